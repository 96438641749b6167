"""A file such as a new user brings: 60 answers of a support bot, each with the context that was retrieved for it and a
label. `python tests/evaluators/rag_file.py answers.csv` writes it. Shops, products and people are invented.

A right answer comes twice, once in the words of its context and once in others; 20 answers contradict their context
in a number, in who did what to whom, in a negation or in a name, and keep all other words."""
import csv
import sys

# Of each family: a context, an answer in its words, an answer in other words, four wrong answers, four fillings.
FAMILIES = [
    ('Customers of {shop} may return a {item} within {days} days of delivery. The refund is paid by bank transfer. '
     'An opened {item} is not accepted. {lead} leads the support team and reports to {boss}.',
     'Customers of {shop} may return a {item} within {days} days of delivery.',
     "Sure, happy to help! If you change your mind, just ship it back; you've got {weeks} weeks from the moment the "
     'parcel reaches your door, and then your money lands in your account.',
     ['Customers of {shop} may return a {item} within {more} days of delivery.',
      'An opened {item} is accepted. The refund is paid by bank transfer.',
      '{boss} reports to {lead}, who leads the support team of {shop}.',
      'The refund is paid by bank transfer. {stranger} leads the support team.'],
     [dict(shop='Nordlicht', item='lamp', days=14, weeks='two', more=30, lead='Ines', boss='Oskar', stranger='Bettina'),
      dict(shop='Velora', item='kettle', days=21, weeks='three', more=12, lead='Priya', boss='Dario',
           stranger='Helena'),
      dict(shop='Quillmart', item='tent', days=28, weeks='four', more=82, lead='Tomas', boss='Greta',
           stranger='Ulrich'),
      dict(shop='Brightly', item='rug', days=35, weeks='five', more=53, lead='Amara', boss='Felix',
           stranger='Sergio')]),
    ('The {device} weighs {grams} grams and runs for {hours} hours on one charge. The {device} is waterproof. It '
     'does not '
     'support {radio}. {maker} designed the {device} and trained {pupil}.',
     'The {device} weighs {grams} grams and runs for {hours} hours on one charge.',
     'Great question: a full battery keeps it alive for {minutes} minutes, so a long flight should be fine, and rain '
     'is nothing to worry about.',
     ['The {device} weighs {grams} grams and runs for {less} hours on one charge.',
      'The {device} is not waterproof. It weighs {grams} grams.',
      '{pupil} trained {maker} and {maker} designed the {device}.',
      'The {device} was designed by {stranger} and is waterproof.'],
     [dict(device='Zephyr', grams=240, hours=10, minutes=600, less=16, radio='5G', maker='Lena', pupil='Marco',
           stranger='Yusuf'),
      dict(device='Corvane', grams=310, hours=5, minutes=300, less=9, radio='Bluetooth', maker='Hugo', pupil='Selma',
           stranger='Patrick'),
      dict(device='Tilda', grams=95, hours=20, minutes='1,200', less=36, radio='Wi-Fi', maker='Noor', pupil='Emil',
           stranger='Monika'),
      dict(device='Paxo', grams=180, hours=8, minutes=480, less=3, radio='NFC', maker='Ravi', pupil='Clara',
           stranger='Dmitri')]),
    ('{founder} founded {firm} in {year}. {buyer} bought the firm from {founder} in {later}. The firm employs {staff} '
     "people. It has never closed a plant. {founder}'s sister is {sister}.",
     '{founder} founded {firm} in {year}, and {buyer} bought the firm from {founder} in {later}.',
     "It all goes back to {founder}, who set the business up in {year} and later handed it over. Its workforce now "
     'counts about {staff} heads, with every factory still running.',
     ['{founder} founded {firm} in {wrong}. The firm employs {staff} people.',
      'The firm employs {staff} people. It has closed a plant.',
      '{founder} bought the firm from {buyer} in {later}.',
      "{founder}'s sister is {stranger}. {founder} founded {firm} in {year}."],
     [dict(firm='Harrowell', founder='Edda', buyer='Konrad', sister='Ruth', year=1931, later=1988, wrong=1913,
           staff=450,
           stranger='Beatrix'),
      dict(firm='Solvanta', founder='Miguel', buyer='Astrid', sister='Pilar', year=1974, later=2003, wrong=1957,
           staff='1,200', stranger='Ingrid'),
      dict(firm='Kestrelin', founder='Agnes', buyer='Jonas', sister='Olga', year=1899, later=1965, wrong=1889, staff=85,
           stranger='Wilma'),
      dict(firm='Bluefen', founder='Kofi', buyer='Teresa', sister='Adjoa', year=2001, later=2019, wrong=2010, staff=60,
           stranger='Francine')]),
    ('The {plan} plan costs {price} euros a month. The trial lasts {trial} days and the notice period {notice} '
     'days. The '
     'plan includes phone support. {owner} pays {worker} for the hotline.',
     'The {plan} plan costs {price} euros a month and includes phone support.',
     "You'd be charged {price} € every month. Before that, you can test things at no charge for {weeks} weeks, and "
     'somebody will pick up whenever you ring us.',
     ['The trial lasts {notice} days and the notice period {trial} days.',
      'The {plan} plan does not include phone support. It costs {price} euros a month.',
      '{worker} pays {owner} for the hotline. The plan includes phone support.',
      'The plan includes phone support. {owner} pays {stranger} for the hotline.'],
     [dict(plan='Basic', price=12, trial=14, notice=60, weeks='two', owner='Lorenz', worker='Maja', stranger='Quentin'),
      dict(plan='Silver', price=25, trial=21, notice=90, weeks='three', owner='Vera', worker='Stefan',
           stranger='Ottilie'),
      dict(plan='Harbour', price=8, trial=7, notice=30, weeks='one', owner='Igor', worker='Louise',
           stranger='Thaddeus'),
      dict(plan='Studio', price=49, trial=28, notice=45, weeks='four', owner='Naomi', worker='Bruno',
           stranger='Casimir')]),
    ('{passed} of {pupils} pupils passed the {exam} exam in {town}. {winner} defeated {loser} in the final. The '
     'largest '
     'school is {school}. The hall is not open on {closed}.',
     '{passed} of {pupils} pupils passed the {exam} exam, and {winner} defeated {loser} in the final.',
     'Nearly everybody made it: just a handful out of {pupils} youngsters missed the mark. As for the title, {winner} '
     'took it home after a gripping last round.',
     ['{fewer} of {pupils} pupils passed the {exam} exam in {town}.',
      'The hall is open on {closed}. {winner} defeated {loser} in the final.',
      '{loser} defeated {winner} in the final in {town}.',
      '{passed} of {pupils} pupils passed the {exam} exam. The largest school is {stranger}.'],
     [dict(passed=38, fewer=28, pupils=40, exam='chemistry', town='Lund', winner='Alva', loser='Nils', school='Birkeby',
           closed='Mondays', stranger='Solheim'),
      dict(passed=19, fewer=9, pupils=20, exam='history', town='Graz', winner='Jakob', loser='Leonie',
           school='Marienhof',
           closed='Fridays', stranger='Rosental'),
      dict(passed=57, fewer=47, pupils=60, exam='sailing', town='Cork', winner='Niamh', loser='Declan',
           school='Ashgrove',
           closed='Sundays', stranger='Thornbury'),
      dict(passed=96, fewer=69, pupils=99, exam='music', town='Porto', winner='Rita', loser='Duarte', school='Belmonte',
           closed='Tuesdays', stranger='Valverde')])]

def rag_rows():
    "Sixty dicts with `response`, `context` and `label` (\"right\" or \"hallucinated\")."
    rows = []
    for context, plain, free, wrong, fillings in FAMILIES:
        for mistake, filling in zip(wrong, fillings):
            for response, label in ((plain, 'right'), (free, 'right'), (mistake, 'hallucinated')):
                rows.append(dict(response=response.format(**filling), context=context.format(**filling), label=label))
    return rows

if __name__ == '__main__':
    with open(sys.argv[1], 'w', newline='', encoding='utf-8') as file:
        writer = csv.DictWriter(file, ['response', 'context', 'label'])
        writer.writeheader()
        writer.writerows(rag_rows())
