"The ledger: lines that a kill leaves whole, however many write."
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from factlib.core.ledger import Ledger, Spent, read_spent

WRITING = '''
import sys
from factlib.core.ledger import Ledger
ledger = Ledger(sys.argv[1])
for i in range(10**6):
    ledger.enter('m', requests=1, unanswered=1, reserved_tokens=7)
    print(i, flush=True)
'''

def test_what_was_entered_before_a_kill_is_there(tmp_path):
    """Two processes write; both are killed in the middle. What they said they had entered is there, and at most one
    line each besides."""
    both = [subprocess.Popen([sys.executable, '-c', WRITING, str(tmp_path/'spent.jsonl')],
                             stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        for _ in range(200): process.stdout.readline()
    for process in both: process.send_signal(signal.SIGKILL)
    said = sum(200 + len(process.communicate()[0].splitlines()) for process in both)
    spent = read_spent(tmp_path/'spent.jsonl')
    assert said <= spent.requests <= said + 2 and spent.reserved_tokens == 7*spent.requests

def test_a_torn_line_is_left_out_and_the_next_one_is_whole(tmp_path):
    "A write that a kill cuts at the end of a page leaves a beginning; another process goes on behind it."
    file = tmp_path/'spent.jsonl'
    Ledger(file).enter('m', requests=1)
    with open(file, 'ab') as f: f.write(b'\n["m", {"requests": 1, "unans')
    other = Ledger(file)
    other.enter('m', requests=1)
    assert read_spent(file).requests == 2
    with open(file, 'ab') as f: f.write(b'\n["m", {"requests": 1}]') # its end is lacking: it wasn't sent
    assert Ledger(file, alone=True).total.requests == 2 and file.read_bytes().endswith(b'\n')

def test_threads_share_it(tmp_path):
    ledger = Ledger(tmp_path/'spent.jsonl')
    def work():
        for _ in range(500):
            ledger.keep('m')
            ledger.enter('m', requests=1, answered=1, prompt_tokens=2)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
    ledger.close()
    assert read_spent(tmp_path/'spent.jsonl') == ledger.total == Spent(requests=4000,
                                                                       answered=4000, kept=4000, prompt_tokens=8000)

def test_a_long_one_is_made_short_and_means_the_same(tmp_path, monkeypatch):
    import factlib.core.ledger as room
    file = tmp_path/'spent.jsonl'
    ledger = Ledger(file)
    for i in range(100): ledger.enter(f'{i % 3}', requests=1, unanswered=1, money=.25)
    ledger.close()
    before, size = read_spent(file), file.stat().st_size
    monkeypatch.setattr(room, '_LONG', 1000)
    short = Ledger(file, alone=True)
    assert file.stat().st_size < size/5 and read_spent(file) == before == short.total and short.of('0').requests == 34

def test_a_full_disk_is_said_and_counts_nothing(tmp_path, monkeypatch):
    "What can't be entered isn't counted, so it isn't sent."
    monkeypatch.setattr('factlib.core.ledger.open_own', lambda *_: os.open('/dev/full', os.O_WRONLY))
    ledger = Ledger(tmp_path/'new')
    with pytest.raises(OSError): ledger.enter('m', requests=1)
    assert ledger.total == Spent()

def test_it_is_its_owners_alone_and_no_link_is_followed(tmp_path):
    (tmp_path/'precious').write_text('mine')
    (tmp_path/'link').symlink_to(tmp_path/'precious')
    with pytest.raises(OSError, match='is a link'): Ledger.enter(_unread(tmp_path/'link'), 'm', requests=1)
    assert (tmp_path/'precious').read_text() == 'mine'
    Ledger(tmp_path/'spent.jsonl').enter('m', requests=1)
    assert os.stat(tmp_path/'spent.jsonl').st_mode & 0o777 == 0o600

def _unread(path):
    "A ledger whose file became a link after it was read."
    ledger = Ledger(path.with_name('new'))
    ledger.file = path
    return ledger
