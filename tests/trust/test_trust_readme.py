"README's first example: what it shows is what `factlib trust` prints."
import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from factlib.cli import app

README = Path(__file__).parents[2]/'README.md'

def test_what_readme_shows_of_a_judge_is_printed(tmp_path, monkeypatch):
    section = README.read_text(encoding='utf-8').split('\n## Your judge\n')[1].split('\n## ')[0]
    table, shown = re.findall(r'```\n(.*?)\n```', section, re.DOTALL)
    command = re.search('`factlib (trust [^`]+ --out [^`]+)`', section)[1]
    monkeypatch.chdir(tmp_path)
    Path('scores.csv').write_text(table + '\n', encoding='utf-8')
    done = CliRunner().invoke(app, shlex.split(command))
    assert done.exit_code == 0 and len(shown.split('\n')) == 3
    decisions = [line for line in done.stdout.split('\n') if line.startswith('gpt4, ')]
    assert decisions == shown.split('\n')
    assert Path('outputs/trust/index.html').is_file()
