"Judges with one planted fault each, on texts whose quality is known."
import numpy as np
import pandas as pd

from factlib.trust.scores import Scale, ScoreFile

DOCUMENTS, TEXTS = 100, 8
SYSTEMS = ['alpha-7b', 'beta-large', 'gamma', 'delta-2', 'epsilon', 'zeta-mini', 'eta', 'theta']
FAULTS = { # judge -> the habit that is its own line; '' where a decision is
    'perfect': '', 'constant': 'constant', 'random': '', 'wordy': 'length', 'gamma-judge': 'own texts',
    'first': 'position', 'drifting': 'drift', 'blind': 'blind groups', 'refusing': 'absences',
    'flat': 'narrow scale', 'shifted': ''}

def points(x): return np.clip(np.round(x), 1, 5)

def texts(rng, people=2, documents=DOCUMENTS):
    "A frame of texts with their quality in `quality`, people in `ann` (and `bob`), and all that a habit may hang on."
    n = documents*TEXTS
    quality = 3 + .5*np.repeat(rng.normal(size=documents), TEXTS) + rng.normal(size=n)
    system = np.tile(SYSTEMS, documents)
    quality += np.tile(np.linspace(-.6, .6, TEXTS), documents)
    frame = pd.DataFrame(dict(item=[f't{i}' for i in range(n)], row=range(n),
                              group=[f'doc {i // TEXTS}' for i in range(n)], system=system,
                              text=[' '.join(['word']*k) for k in rng.integers(10, 200, n)],
                              time=rng.permutation(n).astype(float), position=rng.integers(1, 3, n).astype(float)))
    frame['quality'] = quality
    for name in ('ann', 'bob')[:people]: frame[name] = points(quality + rng.normal(size=n)*.5)
    return frame

def noisy(frame, rng, sd=.5): return frame.quality.to_numpy() + rng.normal(size=len(frame))*sd

def judges(frame, rng):
    "The scores of each planted judge."
    lengths = frame.text.str.split().str.len().to_numpy()
    found = dict(perfect=points(frame.quality), constant=np.full(len(frame), 3.),
                 random=points(rng.normal(3, 1.2, len(frame))),
                 wordy=points(noisy(frame, rng) + .9*(np.log2(lengths) - 6.5)),
                 first=points(noisy(frame, rng) + .8*(frame.position == 1) - .4),
                 drifting=points(noisy(frame, rng) + 1.6*frame.time/len(frame) - .8))
    found['gamma-judge'] = points(noisy(frame, rng) + 1.2*(frame.system == 'gamma'))
    document = frame.group.str[4:].astype(int).to_numpy()
    found['blind'] = np.where(document % 10 == 0, points(noisy(frame, rng)), 3. + document % 2)
    good = noisy(frame, rng)
    found['refusing'] = np.where(good < 2.2, np.nan, points(good))
    found['flat'] = np.round(3 + .25*(noisy(frame, rng) - 3), 1)
    found['shifted'] = points(frame.quality) + 1
    return found

def score_file(frame, judges, people=('ann', 'bob')):
    "A file with these judges."
    people = tuple(p for p in people if p in frame)
    whole = frame.drop(columns='quality').assign(**judges)
    roles = pd.DataFrame([(name, 'judge', 'given', '--judge') for name in judges],
                         columns=['column', 'role', 'why', 'flag'])
    odd = pd.DataFrame(columns=['column', 'value', 'n', 'taken_for'])
    return ScoreFile('planted.csv', whole, tuple(judges), people, Scale('count', (), 1., 5.), {}, roles, odd, (), '',
                     True)

NUMBERS = Scale('number', (), 1., 5.)

def file_of(columns, humans=('ann',), judges=('judge',), scale=NUMBERS, scales=None, strata=(), mixed='', group=None):
    "A file of any columns, as the reader gives it."
    n = len(columns[judges[0]])
    frame = pd.DataFrame(dict(item=[f'i{i}' for i in range(n)], row=range(1, n + 1), **columns))
    if group is not None: frame['group'] = group
    roles = pd.DataFrame(columns=['column', 'role', 'why', 'flag'])
    odd = pd.DataFrame(columns=['column', 'value', 'n', 'taken_for'])
    return ScoreFile('made.csv', frame, tuple(judges), tuple(humans), scale, scales or {}, roles, odd, (), '',
                     group is not None, strata=tuple(strata), mixed=mixed)
