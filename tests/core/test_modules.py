"The modules that a run has loaded."
import sys

import factlib.core.modules
from factlib.core.modules import changed_modules, loaded_modules

def test_a_second_name_of_a_module_is_not_another_module(monkeypatch):
    "It has no file of its own, so it would count as changed for ever."
    for name in ('factlib.core.second', 'second', 'factlib.text.stem'):
        monkeypatch.setitem(sys.modules, name, factlib.core.modules)
    modules = loaded_modules()
    assert 'factlib.core.modules' in modules and changed_modules(modules, stamp='second names') == []
