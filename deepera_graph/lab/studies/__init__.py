"""Studies: functions from a `StudyRunner` to tables and figures; `run.STUDIES` lists them."""
