"""Sentences for the time cues of `evaluators.offline.order`: CUES, ORDINARY, STEPS and NO_STEPS were looked at while the
patterns were made; the two with MORE were written before the patterns were run, and nothing was changed for them."""

CUES = '''What follows now is what had led up to that night.
This is how it had begun.
From here on is told what had happened before.
Let us go back to the beginning.
Before that, the following had happened.
But first, the background.
Three weeks earlier.
Some years before:
Rewind to the start.
Rewind.
How had it come to this?
But how did things get this far?
How did we get here?
It all began with a letter.
It had all started two winters before.
The story now goes back to its beginning.
The story really begins much earlier.
Let's turn back a few months.
We must return to the very beginning.
To understand this, one has to know what had happened earlier.
To explain how it came about, we need to go back several years.
What came before was this.
What had happened earlier is soon told.
Here is what had led to all this.
Here is how the whole affair had started.
How it came to this is told next.
I must explain how things had begun.
These are the events that had led up to it.
The tale steps back in time.
Now is told how it began.
Let me start at the beginning.
Back to the beginning.
Flashback.
Turn the clock back by a year.
This was what had happened up to then.
The narrative jumps back to the day before.'''.split('\n')

ORDINARY = '''The crew decided to turn back before the ice thickened.
She started going back to church.
The police began looking back at the case.
Ann had to go back before the shop closed.
Before dawn, the whole story came out.
He followed her to the beginning of the lane.
The following morning he left before dawn.
They told him earlier.
The story follows a girl who grows up.
The story begins on a ship.
She came back before noon.
She told him everything before supper.
It began to rain before they reached the inn.
It started snowing again.
Tom told the whole tale from the beginning.
He explained how it had started.
The judge asked what had happened before the fire.
This is what he wanted before he died.
This was where Ann started her shop.
What she had started, he finished.
What began as a joke ended in court.
The following was stolen before noon: a ring and a watch.
They must go back to the beginning of the trail.
I went back to the start of the path.
He rewound the tape to the beginning.
The book goes back to the library.
The clock was turned back by the thief before the murder.
That was how it had started, said Holmes.
The boy was told what had happened earlier.
She looked back once before she turned the corner.
First he ate, then he began to read.
But first they had to find the key.
It was the beginning of the end.
Here she started a new life.
The war had begun three years before the birth of Tom.
We had to turn back before the summit.
The captain ordered them to go back to where they had started.
Like this he led them to the cave before nightfall.
Everything began to fall apart.
This led to a quarrel, as it had before.
How he got there is not known.
Ann wondered how it had come to this.
The tale that Tom told led to laughter before bed.
He led the horse back to the start.
Nothing like this had happened before.'''.split('\n')

MORE_CUES = '''But let us start from the beginning.
What led to this is quickly told.
The events leading up to this were as follows.
Six months earlier.
Let us look back at how it began.
How did it all start?
But all this had begun long before.
To see why, we have to turn back the clock.
What follows took place earlier.
The following events came first.
Now back to the start.
This is what went before.
And this is how everything had come about.
We now go back two years.
It all goes back to a winter night.
The account returns to where it all began.
Our story had started ten years earlier.
I should first tell what had gone before.
The whole business had its beginning in a bet.
Earlier:
Here follows the beginning of the story.
First, some history.
Things had come to this in the following way.
A few words on what preceded all this.
It had not always been so.
The reader must now be taken back to the spring.
In order to understand it, you must know how it started.
How matters had reached this point will now be told.
The scene shifts back to an earlier day.
What had come before was quite another story.
All that was the end; here is the beginning.
Let me rewind.
We jump back to the previous summer.'''.split('\n')

MORE_ORDINARY = '''The hikers turned back before the storm broke.
He began to look back on his youth with regret.
Mary goes back to her village before winter.
She wanted to tell him what had led to the divorce.
The whole town knew the story before evening.
In the beginning he liked the job.
The meeting started earlier than planned.
The officer told them to go back to the car.
It had started as a small shop on the corner.
From then on she told nobody what had happened.
This is how he lost his job.
The following year the firm began to fail.
They asked how the fire had started.
He is told next that his father had left before.
What the boys began, the girls finished.
We turned back at the river, as the guide had said.
I have to go back to London before Friday.
The dog led them back to the beginning of the track.
Before long, the whole thing was forgotten.
Going back to work was harder than before.
It was like this before the war, he said.
The teacher begins to tell the story.
How it began did not interest her.
She rewinds the film and watches it once more.
This started a feud that led to three deaths.
The letter tells what had happened at the mill before the flood.
He starts the engine and turns back to the harbour.
Here, the road begins to climb.
The king tells his men to turn back.
They look back at the house where it all began.
All this was told to the judge before the trial.
What happened next was worse than before.
It was how he had always begun his day.
The trial begins, and the witness tells what happened earlier.
Let the boy go back to his mother, she begged.
We should turn back before it gets dark, said Tom.
I will go back to the beginning of the queue.
The story of the theft began to spread.
Now the war had begun.
The old clock turned back into a toy.
Tom must go back in time for dinner.
You must start at the beginning of the line.
This is the house where he was born years before.'''.split('\n')

STEPS = '''Three years earlier they had met.
Earlier, he slept.
He had seen it two days before.
A flashback shows the war.
Before that, it rained.
Long before that, she had sung.
Shortly before, the bell had rung.
Previously, he had worked in a mill.
Earlier that day she had sold the horse.
In a flashback we learn of the fire.
Until then he had lived alone.
Earlier she had hidden the key.'''.split('\n')

NO_STEPS = '''He slept before the war.
It was an early train.
Two days later they met.
She waited three days before she wrote.
Long before dawn she rose.
Shortly before noon the train came.
Just before the gate he fell.
Earlier trains had been cancelled.
Originally from Leeds, Ann came to London.
They left a week earlier than planned.
She suffers from flashbacks and cannot sleep.
Until then, wait here.
Before this house stood an oak.'''.split('\n')
