"""The examples of RFC 5545, section 3.8.5.3, with the dates that it prints.

All are in America/New_York, at 09:00 unless a time is given.  Dates end with ``…`` where those of
the RFC go on.  One rule is that of erratum 3883: its UNTIL is 21:00 in UTC, for at 17:00 it would
end before the last time that is printed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from belfry.schedules.rule import Rule
from belfry.schedules.triggers import trigger_by

NEW_YORK = ZoneInfo("America/New_York")
WEEK = "SU,MO,TU,WE,TH,FR,SA"
TWICE_A_WEEK = "1997 Sep 2,4,9,11,16,18,23,25,30 Oct 2"
JANUARIES = "1998 Jan 1-31 1999 Jan 1-31 2000 Jan 1-31"
SUMMERS = """
    1997 Jun 5,12,19,26 Jul 3,10,17,24,31 Aug 7,14,21,28
    1998 Jun 4,11,18,25 Jul 2,9,16,23,30 Aug 6,13,20,27
    1999 Jun 3,10,17,24 Jul 1,8,15,22,29 Aug 5,12,19,26 …"""
DATES = [
    ("19970902", "FREQ=DAILY;COUNT=10", "1997 Sep 2-11"),
    ("19970902", "FREQ=DAILY;UNTIL=19971224T000000Z",
     "1997 Sep 2-30 Oct 1-31 Nov 1-30 Dec 1-23"),
    ("19970902", "FREQ=DAILY;INTERVAL=2",
     "1997 Sep 2,4,6,8,10,12,14,16,18,20,22,24,26,28,30 Oct 2,4 …"),
    ("19970902", "FREQ=DAILY;INTERVAL=10;COUNT=5", "1997 Sep 2,12,22 Oct 2,12"),
    ("19980101", f"FREQ=YEARLY;UNTIL=20000131T140000Z;BYMONTH=1;BYDAY={WEEK}", JANUARIES),
    ("19980101", "FREQ=DAILY;UNTIL=20000131T140000Z;BYMONTH=1", JANUARIES),
    ("19970902", "FREQ=WEEKLY;COUNT=10", "1997 Sep 2,9,16,23,30 Oct 7,14,21,28 Nov 4"),
    ("19970902", "FREQ=WEEKLY;UNTIL=19971224T000000Z",
     "1997 Sep 2,9,16,23,30 Oct 7,14,21,28 Nov 4,11,18,25 Dec 2,9,16,23"),
    ("19970902", "FREQ=WEEKLY;INTERVAL=2;WKST=SU",
     "1997 Sep 2,16,30 Oct 14,28 Nov 11,25 Dec 9,23 1998 Jan 6,20 Feb 3 …"),
    ("19970902", "FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH", TWICE_A_WEEK),
    ("19970902", "FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH", TWICE_A_WEEK),
    ("19970901", "FREQ=WEEKLY;INTERVAL=2;UNTIL=19971224T000000Z;WKST=SU;BYDAY=MO,WE,FR",
     "1997 Sep 1,3,5,15,17,19,29 Oct 1,3,13,15,17,27,29,31 Nov 10,12,14,24,26,28 Dec 8,10,12,22"),
    ("19970902", "FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH",
     "1997 Sep 2,4,16,18,30 Oct 2,14,16"),
    ("19970905", "FREQ=MONTHLY;COUNT=10;BYDAY=1FR",
     "1997 Sep 5 Oct 3 Nov 7 Dec 5 1998 Jan 2 Feb 6 Mar 6 Apr 3 May 1 Jun 5"),
    ("19970905", "FREQ=MONTHLY;UNTIL=19971224T000000Z;BYDAY=1FR", "1997 Sep 5 Oct 3 Nov 7 Dec 5"),
    ("19970907", "FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU",
     "1997 Sep 7,28 Nov 2,30 1998 Jan 4,25 Mar 1,29 May 3,31"),
    ("19970922", "FREQ=MONTHLY;COUNT=6;BYDAY=-2MO",
     "1997 Sep 22 Oct 20 Nov 17 Dec 22 1998 Jan 19 Feb 16"),
    ("19970928", "FREQ=MONTHLY;BYMONTHDAY=-3",
     "1997 Sep 28 Oct 29 Nov 28 Dec 29 1998 Jan 29 Feb 26 …"),
    ("19970902", "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15",
     "1997 Sep 2,15 Oct 2,15 Nov 2,15 Dec 2,15 1998 Jan 2,15"),
    ("19970930", "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1",
     "1997 Sep 30 Oct 1,31 Nov 1,30 Dec 1,31 1998 Jan 1,31 Feb 1"),
    ("19970910", "FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15",
     "1997 Sep 10-15 1999 Mar 10-13"),
    ("19970902", "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
     "1997 Sep 2,9,16,23,30 Nov 4,11,18,25 1998 Jan 6,13,20,27 Mar 3,10,17,24,31 …"),
    ("19970610", "FREQ=YEARLY;COUNT=10;BYMONTH=6,7",
     " ".join(f"{year} Jun 10 Jul 10" for year in range(1997, 2002))),
    ("19970310", "FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3",
     "1997 Mar 10 1999 Jan 10 Feb 10 Mar 10 2001 Jan 10 Feb 10 Mar 10 2003 Jan 10 Feb 10 Mar 10"),
    ("19970101", "FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200",
     "1997 Jan 1 Apr 10 Jul 19 2000 Jan 1 Apr 9 Jul 18 2003 Jan 1 Apr 10 Jul 19 2006 Jan 1"),
    ("19970519", "FREQ=YEARLY;BYDAY=20MO", "1997 May 19 1998 May 18 1999 May 17 …"),
    ("19970512", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "1997 May 12 1998 May 11 1999 May 17 …"),
    ("19970313", "FREQ=YEARLY;BYMONTH=3;BYDAY=TH",
     "1997 Mar 13,20,27 1998 Mar 5,12,19,26 1999 Mar 4,11,18,25 …"),
    ("19970605", "FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8",
     SUMMERS),
    ("19970902", "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13 EXDATE:19970902T090000",
     "1998 Feb 13 Mar 13 Nov 13 1999 Aug 13 2000 Oct 13 …"),
    ("19970913", "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
     "1997 Sep 13 Oct 11 Nov 8 Dec 13 1998 Jan 10 Feb 7 Mar 7 Apr 11 May 9 Jun 13 …"),
    ("19961105", "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
     "1996 Nov 5 2000 Nov 7 2004 Nov 2 …"),
    ("19970904", "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3", "1997 Sep 4 Oct 7 Nov 6"),
    ("19970929", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
     "1997 Sep 29 Oct 30 Nov 27 Dec 30 1998 Jan 29 Feb 26 Mar 30 …"),
    ("19970805", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO", "1997 Aug 5,10,19,24"),
    ("19970805", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", "1997 Aug 5,17,19,31"),
    ("20070115", "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5", "2007 Jan 15,30 Feb 15 Mar 15,30"),
]  # fmt: skip
EACH_TWENTY = " ".join(f"{hour:02}:{minute:02}" for hour in range(9, 17) for minute in (0, 20, 40))
TIMES = [
    ("FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T210000Z", "09:00 12:00 15:00"),
    ("FREQ=MINUTELY;INTERVAL=15;COUNT=6", "09:00 09:15 09:30 09:45 10:00 10:15"),
    ("FREQ=MINUTELY;INTERVAL=90;COUNT=4", "09:00 10:30 12:00 13:30"),
    ("FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40", f"{EACH_TWENTY} …"),
    ("FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11,12,13,14,15,16", f"{EACH_TWENTY} …"),
]


def walls(start: str, text: str, most: int) -> list[str]:
    """The first instants of a rule, as the wall clock of New York shows them."""
    lines = f"DTSTART;TZID=America/New_York:{start}T090000 RRULE:{text}"
    trigger = trigger_by(Rule("RRULE", lines))
    found: list[str] = []
    due_ms = trigger.first_ms(0)
    while due_ms is not None and len(found) < most:
        at = datetime.fromtimestamp(due_ms / 1000, UTC).astimezone(NEW_YORK)
        found.append(at.strftime("%Y-%m-%d %H:%M"))
        due_ms = trigger.after_ms(due_ms)
    return found


def printed(dates: str) -> list[str]:
    """``1997 Sep 2,4 Oct 2-3`` as a list of days at 09:00."""
    found: list[str] = []
    year = month = ""
    for word in dates.split():
        if word.isdigit() and len(word) == 4:
            year = word
        elif word.isalpha():
            month = word
        else:
            for item in word.split(","):
                first, _, last = item.partition("-")
                days = range(int(first), int(last or first) + 1)
                each = [datetime.strptime(f"{year} {month} {day}", "%Y %b %d") for day in days]  # noqa: DTZ007
                found += [at.strftime("%Y-%m-%d 09:00") for at in each]
    return found


@pytest.mark.parametrize(("start", "text", "dates"), DATES, ids=[f"{s} {t}" for s, t, _ in DATES])
def test_dates(start: str, text: str, dates: str) -> None:
    goes_on = dates.endswith("…")
    wanted = printed(dates.removesuffix("…"))
    assert walls(start, text, len(wanted) + (not goes_on)) == wanted


@pytest.mark.parametrize(("text", "times"), TIMES, ids=[text for text, _ in TIMES])
def test_times(text: str, times: str) -> None:
    goes_on = times.endswith("…")
    wanted = [f"1997-09-02 {time}" for time in times.removesuffix("…").split()]
    found = walls("19970902", text, len(wanted) + 1)
    assert found == [*wanted, "1997-09-03 09:00"] if goes_on else found == wanted
