"A server that plays reader, decomposer, checker, writer and reviser by rule, for evaluators/narrative."
import json
import re

PEOPLE = 'Ann|Bob|Cy|Dora'

def prompt(request): return request['messages'][-1]['content']

def between(content, tag):
    "What a trusting reader takes for the material: up to the first closing tag."
    return content.split(f'<{tag}>\n', 1)[1].split(f'</{tag}>', 1)[0]

def task(request):
    "What is asked for."
    content = prompt(request)
    for name, tag in dict(revise='faults', check='facts', merge='summaries', read='scene', decompose='text').items():
        if f'<{tag}>\n' in content:
            return 'summarise' if name == 'decompose' and '"facts"' not in content.split('</text>')[-1] else name
    raise ValueError(content[:80])

def reads(scene):
    "People by name; \"Bob, Ann's brother\" is a relation, and \"Bob is blind\" a state."
    triples = [dict(subject=a, predicate=f'{p} of', object=b)
               for a, b, p in re.findall(rf"({PEOPLE}), ({PEOPLE})'s (\w+)", scene)]
    triples += [dict(subject=a, predicate=p, object=None) for a, p in re.findall(rf'({PEOPLE}) is (\w+)\.', scene)]
    return dict(names=[[name] for name in sorted(set(re.findall(PEOPLE, scene)))], triples=triples)

def checks(content):
    "A fact is supported if the scene has it word for word, or a noted relation says so."
    notes = between(content, 'people')
    known = between(content, 'scene') + '\n'.join(f'{a} is the {p} {b}.'
                                                  for a, p, b in re.findall(r'(\w+); (\w+ of); (\w+)', notes))
    known += '\n'.join(f'{a} is {p}.' for a, p in re.findall(r'(?m)^(\w+); (\w+)$', notes))
    entry = lambda i, fact: dict(id=i, verdict='supported' if fact in known else 'unsupported',
                                 feedback='' if fact in known else f'Not told: {fact}')
    return dict(verdicts=[entry(i, fact) for i, fact in re.findall(r'(?m)^\[(\w+)\] (.*)$', between(content, 'facts'))])

def sentences(text): return re.findall(r'[^.]+\.', text.replace('\n', ' '))

def rule(request, **spoil):
    "The reply; `spoil`: task -> function of the request and the honest reply."
    content, what = prompt(request), task(request)
    if what == 'check': reply = json.dumps(checks(content))
    elif what == 'read': reply = json.dumps(reads(between(content, 'scene')))
    elif what == 'decompose': reply = json.dumps(dict(facts=[s.strip() for s in sentences(between(content, 'text'))]))
    elif what == 'summarise': reply = sentences(between(content, 'text'))[0].strip() # the first sentence
    elif what == 'merge': reply = ' '.join(between(content, 'summaries').split())
    else: # leaves out the first faulty sentence
        first = re.search(r'(?m)^- (.*?)(?: \(.*)?$', between(content, 'faults'))[1]
        reply = ' '.join(between(content, 'summary').replace(first, '').split())
    return spoil[what](request, reply) if what in spoil else reply

def spoiled(**spoil): return lambda request: rule(request, **spoil)

# Any story, such as ours about Holmes, and all that the experiment narrativefactscore asks for

NAMES = re.compile(r'\b(?:Ann|Bob|Cy|Dora|Holmes|Watson|Helen|Roylott|Julia)\b')

def known(fact, text):
    "Whether most longer words of a fact are in a text."
    words = re.findall(r'\w{5,}', fact.lower())
    return bool(words) and 2*sum(word in text.lower() for word in words) > len(words)

def storyteller(request):
    "The reply: people who follow each other in a scene have met; a summary of a chunk ends in a dragon."
    content = prompt(request)
    if '<sentence>\n' in content:
        return json.dumps(dict(sentence=between(content, 'sentence').strip(' .\n') + ' on Mars.'))
    if '<facts>\n' in content:
        evidence = between(content, 'scene' if '<scene>\n' in content else 'source')
        asked = re.findall(r'(?m)^\[(\w+)\] (.*)$', between(content, 'facts'))
        entry = lambda i, yes: dict(id=i, verdict='supported' if yes else 'unsupported', feedback='' if yes else 'No.')
        return json.dumps(dict(verdicts=[entry(i, known(fact, evidence)) for i, fact in asked]))
    if '<text>\n' in content: # which may be a film, with tags of its own
        text = ' '.join(between(content, 'text').replace('<scene>', '').split())
        if '"facts"' in content.split('</text>')[-1]:
            return json.dumps(dict(facts=[x.strip() for x in sentences(text)]))
        return f'{sentences(text)[0].strip()} Terrible dragons appeared.'
    if task(request) == 'read':
        people = list(dict.fromkeys(NAMES.findall(between(content, 'scene'))))
        return json.dumps(dict(names=[[name] for name in people], triples=[
            dict(subject=a, predicate='met', object=b) for a, b in zip(people, people[1:])]))
    return rule(request)
