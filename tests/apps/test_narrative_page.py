"The drawing of who is who: names never cover each other, all stand on the canvas, and what fades or leads where is right."
import itertools
import re
from xml.etree import ElementTree

import pytest

from factlib.apps.narrative_page import HEIGHT, WIDTH, Person, Tie, draw, layout, short
from factlib.core.records import BadInput

def gap(one, other):
    "How far two boxes are apart, on the axis where they are farther."
    return max(abs(one[i] - other[i]) - (one[i + 2] + other[i + 2])/2 for i in (0, 1))

def check_places(boxes):
    for x, y, width, height in boxes.values():
        assert 10 <= x - width/2 and x + width/2 <= WIDTH - 10 and 10 <= y - height/2 and y + height/2 <= HEIGHT - 10
    for one, other in itertools.combinations(boxes.values(), 2): assert gap(one, other) > 8 - 1e-5

def test_boxes_are_as_wide_as_names():
    "Nine units a letter, twice that for East Asia, none for an accent that stands alone; and ten on each side."
    boxes = layout(['Amy', '李白', 'Zoe\u0301'])
    assert [box[2:] for box in boxes.values()] == [[47, 28], [56, 28], [47, 28]]
    assert short('M'*17) == 'M'*17 and short('M'*18) == 'M'*16 + '…' and short('李'*30) == '李'*7 + '…'

def test_two_people_stand_far_apart():
    (x1, y1, *_), (x2, y2, *_) = layout(['A', 'B'], [Tie('A', 'B', 1, ())]).values()
    assert sorted([x1, x2]) == pytest.approx([72, 888]) and abs(y1 - y2) in (pytest.approx(0), pytest.approx(527))

def test_who_has_no_tie_stands_in_a_row_at_the_bottom():
    names = [f'Villager {i}' for i in range(20)]
    boxes = layout(['A', 'B', *names, 'Narcissus'], [Tie('A', 'B', 1, ()), Tie('Narcissus', 'Narcissus', 1, ())])
    check_places(boxes)
    rows = sorted({boxes[name][1] for name in [*names, 'Narcissus']})
    assert [b - a for a, b in itertools.pairwise(rows)] == [36]*(len(rows) - 1) and rows[-1] == HEIGHT - 24
    assert max(boxes['A'][1], boxes['B'][1]) < rows[0] and boxes['Villager 0'][0] - boxes['Villager 0'][2]/2 == 10

@pytest.mark.parametrize('ties', ['star', 'ring', 'pairs', 'all'])
def test_thirty_of_the_widest(ties):
    names = [f'The Right Honourable Lord {i}' for i in range(30)]
    pairs = dict(star=[(names[0], n) for n in names[1:]], ring=[*itertools.pairwise([*names, names[0]])],
                 pairs=[(a, b) for a, b in zip(names[::2], names[1::2])], all=[*itertools.combinations(names, 2)])[ties]
    boxes = layout(names, [Tie(a, b, 1, ()) for a, b in pairs])
    check_places(boxes)
    assert boxes == layout(names, [Tie(a, b, 1, ()) for a, b in pairs]) # nobody moves

def test_how_many_there_can_be():
    assert layout([]) == {} and len(layout([f'P{i}' for i in range(60)])) == 60
    with pytest.raises(BadInput, match='60'): layout([f'P{i}' for i in range(61)])

def shown(svg):
    "(names of those who fade, lines that fade, addresses) of a drawing."
    tree, ns = ElementTree.fromstring(svg), ''
    people = {g.find(f'{ns}text').text: 'faint' in g.get('class') for g in tree.iter(f'{ns}g')}
    lines = [(line.get('stroke-width'), 'faint' in line.get('class'), line.find(f'{ns}title').text)
             for line in tree.iter(f'{ns}line')]
    return people, lines, [a.get('href') for a in tree.iter(f'{ns}a')]

PEOPLE = [Person('Helen', 9), Person('Julia', 1, ('Miss Stoner',)), Person('Holmes', 1234), Person('Watson', 3)]
TIES = [Tie('Helen', 'Julia', 3, tuple(f'said {i}' for i in range(20))), Tie('Holmes', 'Watson', 9, ()),
        Tie('Helen', 'Helen', 1, ('alone',)), Tie('Helen', 'Nobody', 1, ('not drawn',))]

def test_lines_and_labels():
    "A line is thicker by the logarithm of its count, and tells the first twelve things that were said."
    svg = draw(PEOPLE, TIES)
    people, lines, links = shown(svg)
    assert people == dict.fromkeys(['Helen', 'Julia', 'Holmes', 'Watson'], False) and links == []
    assert lines == [('2.5', False, '\n'.join(f'said {i}' for i in range(12))), ('3.7', False, None)]
    assert 'Julia, Miss Stoner\n1 mention<' in svg and 'Holmes\n1,234 mentions<' in svg

def test_a_chosen_person():
    "Who has nothing to do with them fades; a click on them chooses everybody again."
    people, lines, links = shown(draw(PEOPLE, TIES, chosen='Julia', link=lambda name: f'?about={name}'))
    assert people == dict(Helen=False, Julia=False, Holmes=True, Watson=True)
    assert [faint for _, faint, _ in lines] == [False, True]
    assert links == ['?about=Helen#characters', '?about=#characters', '?about=Holmes#characters',
                     '?about=Watson#characters']

def test_the_most_mentioned_and_the_chosen_one():
    many = [Person(f'P{i}', 2000 - i) for i in range(2000)]
    assert list(shown(draw(many, [], most=2))[0]) == ['P0', 'P1'] == list(shown(draw(many, [], chosen='P1', most=2))[0])
    assert list(shown(draw(many, [], chosen='P1500', most=2))[0]) == ['P0', 'P1500']

def test_a_filtered_tie_moves_nobody():
    at = lambda svg: re.findall(r'<rect x="([\d.]+)" y="([\d.]+)"', svg)
    assert at(draw(PEOPLE, TIES[:1], TIES)) == at(draw(PEOPLE, TIES))

def test_arrows_lead_from_who_to_whom_and_say_it():
    "A head for each direction, at the border of the box it leads to; the words of few lines, or of the chosen person."
    ties = [Tie('Helen', 'Julia', 1, (), ('sister of', 'older than'), ('afraid of',)),
            Tie('Holmes', 'Watson', 1, (), ('helps',))]
    svg = draw(PEOPLE, ties)
    tips = [tuple(map(float, points.split()[0].split(','))) for points in re.findall(r'points="([^"]+)"', svg)]
    boxes = layout([p.name for p in PEOPLE], ties)
    for (x, y), name in zip(tips, ['Julia', 'Helen', 'Watson'], strict=True):
        middle_x, middle_y, width, height = boxes[name]
        sides = abs(abs(x - middle_x) - width/2), abs(abs(y - middle_y) - height/2)
        assert min(sides) < .1 and abs(x - middle_x) < width/2 + .1 and abs(y - middle_y) < height/2 + .1
    said = lambda svg: re.findall(r'class="said"[^>]*>([^<]+)<', svg)
    assert said(svg) == ['sister of …', 'afraid of', 'helps'] and said(draw(PEOPLE, ties, chosen='Watson')) == ['helps']
    crowd = [Person(f'P{i}') for i in range(20)]
    many = [Tie('P0', f'P{i}', 1, (), ('knows',)) for i in range(1, 20)]
    assert said(draw(crowd, many)) == [] and said(draw(crowd, many, chosen='P7')) == ['knows']
