"The promised address of `trust`."
import subprocess
import sys

def test_the_first_address_gives_the_same_functions_without_a_warning():
    code = ('import factlib.metaeval.trust as first, factlib.trust.trust as now; from factlib.metaeval.trust import trust; '
            'print(trust is now.trust, first.write_trust is now.write_trust)')
    run = subprocess.run([sys.executable, '-W', 'error', '-c', code], capture_output=True, text=True, check=True)
    assert run.stdout == 'True True\n'
