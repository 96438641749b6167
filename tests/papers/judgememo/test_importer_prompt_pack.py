"The family's table and the pack of prompts, against the prompt files of the thesis's repository."
import os
import re
import tarfile
from pathlib import Path

import pytest

from factlib.core.records import BadInput, Example
from factlib.evaluators.memo.judgememo import JudgeMemo
from factlib.evaluators.prompt_family import VERSIONS, PromptFamily
from factlib.llm.chat import Chat
from factlib.papers.judgememo.importer import piece, prompt_pack

HOME = os.environ.get('FACTLIB_DATA', '')
CUT = Path(HOME)/'judgememo_clone/clone_cut.tar.gz' if HOME else Path('nowhere')
needs_clone = pytest.mark.skipif(not CUT.is_file(), reason='FACTLIB_DATA has no cut of the repository')

@pytest.fixture(scope='module')
def clone(tmp_path_factory):
    folder = tmp_path_factory.mktemp('clone')
    with tarfile.open(CUT) as archive:
        archive.extractall(folder, members=[m for m in archive if '/prompts' in m.name], filter='data')
    return folder/'JudgeMemo'

def chat(): return Chat('m', 'http://localhost:9/v1', api_key='none', mode='off')

def features(text):
    "What a prompt file has, by marks that stand in it; each was looked for by hand in all twenty."
    has = lambda pattern: bool(re.search(pattern, text))
    definitions = {'high': r'quality of (?:\*\*)?(?:individual|all) sentences',
                   'medium': r'reflects the overall clarity|evaluates how well the ideas',
                   'detailed': r'assesses how the (?:text reads|story unfolds)', 'aspects': r'Evaluation Aspects:'}
    found = [name for name, pattern in definitions.items() if has(pattern)]
    assert len(found) == 1, found
    return dict(definitions=found[0], listed=has(r'(?i)bullet\s?points|mark each issue'),
                labels=has(r'\[GRAMMAR\]|\[LOGIC\]'), structured=has('Evaluation Form'),
                strict=has(r'(?s)(?:Do not|forbidden to) generate any other opening'),
                described=has('Score 5:'), terse=has('(?i)summarize (?:problems|the detected)'),
                half=has('half-points'), gravest=has('most serious problems') and has('corrections for detected'),
                own=has('give me around'))

@needs_clone
def test_the_table_is_what_the_twenty_files_say(clone):
    files = sorted((clone/'baseline_model_inference/prompts').glob('prompt_v*.txt'))
    assert len(files) == 20
    seen = {}
    for file in files:
        version, _, metric = file.stem.removeprefix('prompt_').partition('_')
        apart = metric in ('fluency', 'coherence')
        want = features(file.read_text(encoding='utf-8')) | dict(apart=apart)
        assert VERSIONS[version]._asdict() == want, file.name
        seen.setdefault(version, []).append(metric)
    assert set(seen) == set(VERSIONS)

@needs_clone
def test_what_a_pack_sends_is_the_file_with_the_text_in_it(clone, tmp_path):
    prompt_pack(clone, tmp_path)
    text = 'A {fox} and {{ a }} hen.'
    for version, switches in VERSIONS.items():
        requests = PromptFamily(chat(), version, pack=tmp_path).plan(Example('a', target=text))
        names = [f'{version}_{m}' for m in ('fluency', 'coherence')] if switches.apart else [version]
        assert len(requests) == len(names)
        for request, name in zip(requests, names):
            file = (clone/f'baseline_model_inference/prompts/prompt_{name}.txt').read_text(encoding='utf-8')
            assert [m['role'] for m in request.messages] == ['user']
            # line breaks at the end are not sent
            assert request.messages[0]['content'] == file.replace('{Story}', text).rstrip('\n')

@needs_clone
@pytest.mark.parametrize('aware', [True, False])
def test_judgememo_with_the_authors_prompts(clone, tmp_path, aware):
    prompt_pack(clone, tmp_path, aware)
    folder = clone/'JudgeMemo_Method'/('prompts' if aware else 'prompts_no-context')
    read = lambda name: (folder/name).read_text(encoding='utf-8')
    text = ' '.join(f'This is sentence number {i}.' for i in range(60))
    example = Example('a', target=text)
    memo = JudgeMemo(chat(), size=120, overlap=.1, pack=tmp_path)
    *sections, final = [r.messages[-1]['content'] for r in memo.plan(example)]
    assert len(sections) > 2
    # the first section has nothing before it: the form without overlap; the second has
    head = read('prompt_v6-3_JudgeMemo_hard.txt').split('{Story}')[0]
    assert sections[0].startswith(head + 'This is sentence number 0.')
    before, between, _ = re.split(r'\{AddOn\}|\{Content\}', read('prompt_v6-3_JudgeMemo_stride.txt'))
    assert sections[1].startswith(before) and between in sections[1]
    first, last = read('report_only_eval_prompt.txt').split('{Story}')
    assert final.startswith(first) and final.endswith(last)
    original = JudgeMemo(chat(), 'report_original', size=120, pack=tmp_path).plan(example)[-1].messages[-1]['content']
    assert read('report_original_eval_prompt.txt').split('{Content}')[0].replace('{AddOn}', text) in original
    summed = JudgeMemo(chat(), 'report_summary', size=120, summaries=True, pack=tmp_path).plan(example)
    assert any(r.messages[-1]['content'] == read('prompt_document_summary.txt').replace('{Story}', text)
               for r in summed)
    assert sum(r.messages[-1]['content'].startswith('Section: ') for r in summed) == len(sections)

def test_what_is_no_clone_is_said(tmp_path):
    with pytest.raises(BadInput, match=r'prompt_v1.txt of .* can\'t be read'): prompt_pack(tmp_path, tmp_path/'out')
    with pytest.raises(ValueError, match='no place'): piece('Judge.', dict(Story='target'))

def test_the_final_judge_may_give_the_scores_alone():
    text = Example('a', target='A fox went home. It slept.')
    for reason in (True, False):
        request = JudgeMemo(chat(), reason=reason).plan(text)[-1]
        assert ('reason' in request.options['schema']['properties']) == reason == (
            '"reason"' in request.messages[-1]['content'])
        assert list(request.options['schema']['properties'])[-2:] == ['fluency', 'coherence']
        assert '"fluency": score, "coherence": score}' in request.messages[-1]['content']
    assert JudgeMemo(chat(), reason=False).signature != JudgeMemo(chat()).signature
    assert JudgeMemo(chat(), reason=False).notes_signature == JudgeMemo(chat()).notes_signature
