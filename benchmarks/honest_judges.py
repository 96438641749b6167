"""How often `factlib trust` wrongs an honest judge, and how often a good one gets the yes it was promised.

`make bench` runs it (some ten minutes); `--judges 200 --power 0` measures false refusals and accusations alone.

Honest judges: a text has a quality; each person and the judge see it with noise of the same size, and nothing else.
Half of the files have one person, half have two. In half of them long texts are better, so that a judge that knows
quality correlates with length and yet favors nothing. Scales are 1 to 5, two labels, and 0 to 100. Every NO is wrong:
in truth the judge catches and passes some 78 % (70 % is asked for), its mean is people's, it ranks the systems as
they do, and it is as good as a person. Every habit found is wrong, too.

Power: a pilot file of a good judge says "about N rows would confirm it". Another file of the same judge, with N rows,
should give the yes in some 80 % of cases. Files that promise nothing, or have their yes, don't count."""
import argparse
import re
import time
from collections import Counter

import numpy as np
import pandas as pd

from factlib.trust.habits import habits_table
from factlib.trust.matrix import score_matrix
from factlib.trust.scores import Scale, ScoreFile
from factlib.trust.decision import NO, NOT_YET, YES
from factlib.trust.uses import decide

SCALES = ( # A scale, and how a quality around 0 is written on it
    (Scale('number', (), 1, 5), lambda x: np.clip(np.round(3 + x), 1, 5)),
    (Scale('binary', ('bad', 'good'), 0, 1), lambda x: (x > 0)*1.),
    (Scale('number', (), 0, 100), lambda x: np.clip(np.round(50 + 15*x), 0, 100)))
NOISE = .5 # Standard deviation of a person's error, and of the judge's; that of the quality is 1
USES = ('rank', 'filter', 'mean', 'replace')
SYSTEMS = ('judge', 'alpha', 'beta') # One carries the judge's name

def honest_file(rng, n, scale=0, people=2, noise=NOISE, apart=.8, linked=False, group=1):
    "A file of an honest judge: `apart` is between the best and the worst system; `group` rows share a document."
    kind, write = SCALES[scale]
    system = rng.permutation(np.arange(n) % len(SYSTEMS))
    shared = np.repeat(rng.normal(size=-(-n//group)), group)[:n]*(.5 if group > 1 else 0)
    quality = shared + rng.normal(size=n)*np.sqrt(1 - .25*(group > 1)) + apart*(system/(len(SYSTEMS) - 1) - .5)
    size = 6.5 + .8*(linked*quality*.7 + rng.normal(size=n)*np.sqrt(1 - .49*linked))
    humans = tuple(f'person_{i}' for i in range(people))
    seen = lambda: write(quality + noise*rng.normal(size=n))
    frame = pd.DataFrame(dict(
        item=[f'i{i}' for i in range(n)], row=range(1, n + 1), judge=seen(), **{name: seen() for name in humans},
        system=[SYSTEMS[s] for s in system], text=[f'{i} ' + 'w '*int(k) for i, k in enumerate(np.clip(2**size, 3, 400))],
        time=rng.permutation(n)*1., position=rng.integers(1, 3, n)*1.))
    if group > 1: frame['group'] = [f'd{i//group}' for i in range(n)]
    roles = pd.DataFrame(columns=['column', 'role', 'why', 'flag'])
    odd = pd.DataFrame(columns=['column', 'value', 'n', 'taken_for'])
    return ScoreFile('honest.csv', frame, ('judge',), humans, kind, {}, roles, odd, (), '', group > 1)

def wronged(judges, n, seed=0, show=False):
    "Counts of what was said wrongly of honest judges: 'any', 'NO filter', 'habit length' and so on."
    found = Counter()
    for number in range(judges):
        rng = np.random.default_rng([seed, n, number])
        matrix = score_matrix(honest_file(rng, n, number % 3, 1 + number//3 % 2, linked=bool(number//6 % 2),
                                          group=4 if number//12 % 2 else 1))
        decisions, habits = decide(matrix, USES), habits_table(matrix)
        said = [f'NO {use}' for use in decisions.use[decisions.decision == NO]]
        said += [f'habit {habit}' for habit in habits.habit[habits.found == True]]
        if show and said:
            print(number, said, *decisions.why[decisions.decision == NO], *habits.said[habits.found == True], sep='\n  ')
        found.update(said + (['any'] if said else []))
    return found

def promised_number(why):
    "The rows (or groups) that a sentence promises a yes for; None: it promises none."
    m = re.search(r'about ([\d,]+) \w+ \(you have [\d,]+\) would confirm it', why)
    m = m or re.search(r'as good as a person .* takes about ([\d,]+)', why)
    return int(m[1].replace(',', '')) if m else None

def power(use, draws, need, pilot=60, scale=0, most=3000, seed=1, **about):
    "(promises that were made, their median number of rows, share that is kept by another file of so many rows)."
    def decided(n, *stream):
        matrix = score_matrix(honest_file(np.random.default_rng([seed, *stream]), n, scale, **about))
        return decide(matrix, (use,), need).iloc[0]
    promised = [promised_number(decided(pilot, 0, k).why) for k in range(draws)]
    promised = [n for n in promised if n is not None and n <= most]
    kept = [decided(n, 1, k).decision == YES for k, n in enumerate(promised)]
    return len(promised), *(float(x) for x in (np.median(promised or [np.nan]), np.mean(kept or [np.nan])))

POWERED = ( # Use, scale, criteria, and how the files are made; what is asked for lies close to what is true
    ('filter', 0, dict(caught=.55, passed=.55), dict(people=1)),
    ('filter', 1, dict(caught=.7, passed=.7), dict(people=1)),
    ('filter', 2, dict(caught=.7, passed=.7), dict(people=1)),
    ('mean', 0, dict(mean=.05), {}), ('mean', 2, dict(mean=.05), {}), ('mean', 1, dict(failures=.2), {}),
    ('rank', 0, {}, dict(apart=1.)), ('rank', 1, {}, dict(apart=1.)), ('rank', 2, {}, dict(apart=1.)),
    ('replace', 0, {}, dict(people=3)), ('replace', 1, {}, dict(people=3)), ('replace', 2, {}, dict(people=3)))

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--judges', type=int, default=200, help='honest judges for each number of rows')
    parser.add_argument('--sizes', type=int, nargs='*', default=[30, 60, 200], help='numbers of rows')
    parser.add_argument('--power', type=int, default=100, help='pilot files for each use; 0: none')
    parser.add_argument('--show', action='store_true', help='print what was said wrongly')
    parser.add_argument('--seed', type=int, default=0)
    options = parser.parse_args()
    for n in options.sizes if options.judges else ():
        start, found = time.process_time(), wronged(options.judges, n, options.seed, options.show)
        print(f'n {n:4}: {found["any"]} of {options.judges} wronged ({100*found["any"]/options.judges:.1f} %), '
              f'{(time.process_time() - start)/options.judges:.2f} s each; {dict(found)}', flush=True)
    for use, scale, need, about in POWERED if options.power else ():
        made, n, kept = power(use, options.power, need, scale=scale, **about)
        print(f'{use:8} scale {scale} {need}: {made} of {options.power} pilots promise a yes, at a median of {n:.0f} '
              f'rows; {100*kept:.0f} % of the promises are kept', flush=True)


if __name__ == '__main__': main()
