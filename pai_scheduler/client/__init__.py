"""What a person or a notebook server installs: clients of REST, storage and SSH, and the command `pai`."""

from .rest import Client as Client
