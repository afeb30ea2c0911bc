"""Settings of `PAISpawner` (`c.PAISpawner.… = …`); `make docs` lists them in docs/administrators/hub.md."""

from __future__ import annotations

from traitlets import Dict, Float, Integer, List, Unicode
from traitlets.config import Configurable

from .options import HubLimits


class SpawnerSettings(Configurable):
    """The settings of `PAISpawner`, apart from those every Spawner has."""

    scheduler_url = Unicode(
        "http://127.0.0.1:9186", config=True, help="Where the Hub reaches the scheduler, without `/api/v1`."
    )
    scheduler_token = Unicode(
        config=True,
        help="The Hub's own token for the scheduler; its owner is an admin there (`--admin-service`).",
    )
    api_url = Unicode(
        config=True,
        help="""Where servers reach the scheduler: the Hub's public address with `/services/pai`.

        Handed on as `PAI_API_URL`. An engine whose tasks cannot reach that address (Docker) tells its own.
        """,
    )
    sessions_file = Unicode(
        config=True,
        help="""File that says what holds for running servers: here, how many one may have at once.

        The service `pai-sessions` reads the same file. Empty: no limit.
        """,
    )
    sessions_url = Unicode(
        config=True,
        help="""Where servers reach the service `pai-sessions`: the Hub's public address with its path.

        Handed on as `PAI_SESSIONS_URL`. Empty: JupyterLab says nothing of a server's end.
        """,
    )
    images = Dict(
        value_trait=Unicode(),
        key_trait=Unicode(),
        config=True,
        help="The images offered in the form: name shown → image. The first is the default.",
    )
    allowed_images = List(
        trait=Unicode(),
        config=True,
        help="""Regular expressions: a person may type an image whose whole name one of them matches.

        `[".*"]`: any image; empty: only those in `images`.
        """,
    )
    profiles = List(
        trait=Dict(),
        config=True,
        help="""Choices prepared for people, each a dictionary; empty: everything may be chosen.

        `docs/administrators/hub.md` describes them, and `pai_spawner/profiles.schema.json` is their form.
        """,
    )
    default_cpus = Integer(1, min=1, config=True, help="CPUs of a server when nothing is chosen.")
    default_memory_mb = Integer(
        2048, min=256, config=True, help="Memory of a server in MB when nothing is chosen."
    )
    most_cpus = Integer(
        0, min=0, config=True, help="CPUs a server may have at most; 0: as many as a node has."
    )
    most_memory_mb = Integer(
        0, min=0, config=True, help="Memory in MB a server may have at most; 0: a node's."
    )
    most_gpus = Integer(
        0, min=0, config=True, help="GPUs a server may have at most; 0: as many as a node has."
    )
    shm_mb = Integer(
        512,
        min=1,
        config=True,
        help="Shared memory (`/dev/shm`) of a server in MB, never more than its memory.",
    )
    homes = Unicode(
        config=True,
        help="""Folder with one persistent folder per user, in which that user's servers work.

        For the process engine, whose tasks see this machine's files. Empty: a server works in its task's own
        scratch folder, or in its container's working folder.
        """,
    )
    home_in_container = Unicode(
        config=True,
        help="""Where a user's servers find that user's persistent home in their containers.

        For Docker, instead of `homes`: the scheduler keeps a volume for each user (`extras.home` of a job).
        The server works there, as its home folder. Empty: what is in a container goes with it.
        """,
    )
    shared_folders = List(
        trait=Unicode(),
        default_value=["*"],
        config=True,
        help="""Which of the scheduler's shared folders servers have, by name; `*`: all open to the user.

        For Docker: `sharedFolders` in the scheduler's cluster file says what they are, and to whom they are
        open. A profile may name others.
        """,
    )
    tutorials = Unicode(
        config=True,
        help="""Folder of which a user's persistent folder gets what it lacks, as `tutorials`; empty: none.

        What is there already is never overwritten. On this machine with `homes`, in the image with
        `home_in_container`.
        """,
    )
    launch_patience = Float(
        900.0,
        min=1,
        config=True,
        help="Seconds of silence, once the server has left the queue, until a start is given up.",
    )
    answer_patience = Float(
        120.0,
        min=1,
        config=True,
        help="Seconds a running server may take until it answers for the first time.",
    )
    stop_patience = Float(
        60.0,
        min=1,
        config=True,
        help="Seconds to wait for a stopped server's end; after that it goes on in the background.",
    )

    @property
    def policy(self) -> HubLimits:
        """Return what this Hub lets people choose."""
        return HubLimits(
            self.images,
            tuple(self.allowed_images),
            self.default_cpus,
            self.default_memory_mb,
            self.most_cpus,
            self.most_memory_mb,
            self.most_gpus,
            self.shm_mb,
        )
