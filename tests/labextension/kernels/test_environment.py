from __future__ import annotations

from pai_labextension.kernels.job_spec import carried

SERVER = {
    "PATH": "/opt/jupyter/bin:/bin",
    "HOME": "/home/jovyan",
    "MY_SETTING": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "NVIDIA_VISIBLE_DEVICES": "void",
    "PAI_JOB_NAME": "notebook_01234567",
    "PAI_API_URL": "http://hub/services/pai",
    "PAI_TOKEN": "mine",
    "JUPYTERHUB_API_TOKEN": "mine too",
    "JPY_PARENT_PID": "7",
    "JPY_SESSION_NAME": "/home/jovyan/a.ipynb",
    "MEM_LIMIT": "1024",
    "HOSTNAME": "notebook-0",
    "LANG": "C.UTF-8",
    "_": "/bin/env",
}


def test_in_the_servers_image_a_kernel_has_all_but_what_only_the_servers_task_is():
    got = carried(SERVER, same_image=True)
    assert {name: got.get(name) for name in ("PATH", "HOME", "MY_SETTING")} == {
        "PATH": "/opt/jupyter/bin:/bin",
        "HOME": "/home/jovyan",
        "MY_SETTING": "1",
    }
    assert not got.keys() & {
        *("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "PAI_JOB_NAME", "JPY_PARENT_PID"),
        *("MEM_LIMIT", "HOSTNAME", "_"),
    }


def test_in_another_image_paths_are_those_of_the_image():
    got = carried(SERVER, same_image=False)
    assert not got.keys() & {"PATH", "HOME", "MY_SETTING"}
    assert got["LANG"] == "C.UTF-8"


def test_who_the_person_is_and_which_notebook_it_is_goes_along_in_any_case():
    for same_image in (True, False):
        got = carried(SERVER, same_image=same_image)
        assert got["PAI_TOKEN"] == "mine"
        assert got["JUPYTERHUB_API_TOKEN"] == "mine too"
        assert got["PAI_API_URL"] == "http://hub/services/pai"
        assert got["JPY_SESSION_NAME"] == "/home/jovyan/a.ipynb"


def test_what_an_administrator_names_goes_along_too():
    assert carried(SERVER, same_image=False, more=["MY_SETTING"])["MY_SETTING"] == "1"
