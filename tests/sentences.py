"What tests of findings share: a finding may be one sentence or several."

def joined(found):
    "All that was found, as one text."
    return found if isinstance(found, str) else ' '.join(found)

def says(found, *words):
    "Each of these words was found."
    for part in words: assert part in joined(found), found

def ends(frame, mean, half, **more):
    "The frame with a column `mean` and its interval of this half width."
    return frame.assign(mean=mean, ci_low=[m - half for m in mean], ci_high=[m + half for m in mean], **more)
