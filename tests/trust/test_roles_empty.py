"Files in which nobody has rated, or some cells hold nothing, in whatever words and format."
import json

import numpy as np
import pandas as pd
import pytest

from factlib.core.records import BadInput
from factlib.trust.scores import read_scores
from factlib.trust.trust import trust
from factlib.trust.decision import YES

N = 40
PEOPLE = [1, 2, 3, 4, 5]*8
JUDGE = [1, 2, 4, 4, 5]*8

@pytest.mark.parametrize('empty', ['', 'NA', 'None', 'null', 'n/a', 'NaN', None])
@pytest.mark.parametrize('name', ['human_rating', 'label', 'ground_truth', 'Mensch', 'expert_2', 'human_winner'])
def test_nobody_has_rated_yet(name, empty):
    frame = pd.DataFrame({'id': range(N), 'gpt4_score': JUDGE, name: [empty]*N})
    with pytest.raises(BadInput, match='Nobody has rated yet') as refused: read_scores(frame)
    assert repr(name) in str(refused.value) and '--human' in str(refused.value)

def test_nobody_has_rated_yet_in_lines_of_json(tmp_path):
    path = tmp_path/'judgments.jsonl'
    path.write_text('\n'.join(json.dumps(dict(case_id=f'c{i}', human_decision=None, human_scores=None,
                                              judge_decision='pass' if p > 2 else 'fail',
                                              judge_scores=dict(relevance=p, clarity=p))) for i, p in enumerate(JUDGE)))
    with pytest.raises(BadInput, match="Nobody has rated yet: 'human_decision', 'human_scores' hold"): read_scores(path)

def test_a_rater_without_a_score_and_a_judge_without_one():
    rows = [dict(id=i, rater=who, score=s) for i, p in enumerate(JUDGE)
            for who, s in (('expert Anna', None), ('gpt-4', p))]
    with pytest.raises(BadInput, match="Nobody has rated yet: 'expert Anna' holds"): read_scores(pd.DataFrame(rows))
    with pytest.raises(BadInput, match="No judge has scored yet: 'gpt4_score' holds"):
        read_scores(pd.DataFrame(dict(id=range(N), human=PEOPLE, gpt4_score='NA')))

WORDS = {1: 'fail', 2: 'fail', 3: 'pass', 4: 'pass', 5: 'pass'}

@pytest.mark.parametrize('dress', [str, WORDS.get, float], ids=['numbers', 'words', 'floats'])
def test_nothing_is_the_same_in_all_formats(dress, tmp_path):
    seen = set()
    for empty in ('', 'NA', 'None', 'null', None):
        frame = pd.DataFrame(dict(id=range(N), human=[dress(p) for p in PEOPLE], gpt4=[dress(p) for p in JUDGE]),
                             dtype=object)
        frame.loc[[3, 7], 'human'] = empty
        frame.loc[[4, 5, 9], 'gpt4'] = empty
        as_text = frame.astype('string') if empty is not None else frame
        for name, write in dict(csv=lambda p: frame.to_csv(p, index=False),
                                tsv=lambda p: frame.to_csv(p, sep='\t', index=False),
                                jsonl=lambda p: frame.to_json(p, orient='records', lines=True),
                                parquet=lambda p: as_text.astype('string').to_parquet(p)).items():
            write(tmp_path/f'scores.{name}')
            found = read_scores(tmp_path/f'scores.{name}')
            seen.add(tuple(tuple(found.frame[c].fillna(-1)) for c in ('human', 'gpt4')))
            missing = {c: set(np.flatnonzero(found.frame[c].isna())) for c in ('human', 'gpt4')}
            assert missing == dict(human={3, 7}, gpt4={4, 5, 9}), (empty, name)
    assert len(seen) == 1

@pytest.mark.parametrize('human, judge', [(PEOPLE, PEOPLE), (PEOPLE, [20*p for p in PEOPLE]),
                                          ([f'c{p}' for p in PEOPLE], [f'c{p}' for p in PEOPLE])])
def test_a_judge_that_is_a_copy_of_people_is_asked_about(human, judge):
    found = trust(pd.DataFrame(dict(expert=human, answer=[f'some answer of row {i}' for i in range(N)], gpt=judge)))
    assert 'is it a copy?' in found.warnings[0] and f'{N} of {N} rows' in found.warnings[0]
    assert YES not in set(found.decisions.decision)
