/* Chapter 2: who takes over when, and how workers and group come to agree.

   The group says whose the partition is, and each worker hears of it later.  Three rules go beyond what
   it says, and the fence of chapter 1 makes all of them safe:

       hand-over     who loses the partition fires until its successor fences it
       pre-emptive   a standby that takes the owner for silent fences it before the group moves anything
       fenced off    an owner that the group has not told so asks the group, and waits for its word

       A   owner ── fires ──┤ fenced off ── asks ──► told: it is B's ── ends
       B   standby ── alarm ── fence ── replays ── fires ────────────► told: it is mine
       group  A's                              asked: the higher epoch owns it: B's

   Events are judged as in chapter 1.  Besides, every history comes to rest: the event has fired, the
   worker that owns the partition is the one that the group names, and the other one has let go.  Two
   workers that fence each other for ever would never come to rest: their epochs pass MOST_EPOCHS.

   planted bug           what it does
   GROUP_FOR_FENCE       does not fence where the group has assigned the partition
   EARLY_AGAIN           lets a pre-emptive owner that was fenced off take over once more
   NEVER_ASKS            lets an assigned owner that was fenced off wait without asking the group */

#define IDS 1
#define SENDERS 2
#define EVENTS 1
#define LOG 12
#define MOST_EPOCHS 20
#ifndef FAULTS
#define FAULTS 1
#endif
#define REPEATS 0
#ifndef MOVES
#define MOVES 1
#endif
#define ALARMS 1

#include "kafka.pml"
#include "changelog.pml"
#include "coordinator.pml"

byte assigned = 0;              /* whose the partition is, as the leader of the group has it */
bool told[2];                   /* what each worker has heard */
bool asks[2];                   /* a worker wants the group to share anew */
byte owns[2];                   /* what a worker says of itself (Owners.holdings), as an order: */
#define NOT_OWNED 0
#define TAKING_OVER 1           /* NO_EPOCH: any owner's is higher */
#define OWNED(mine) (mine + 1)
byte moves = MOVES;             /* so often the group moves the partition by itself */
byte alarms = ALARMS;           /* so often a standby takes the owner for silent, rightly or not */

/* `partitions/supervisor.py` Owners, and below it `partitions/owner.py` PartitionRunner. */
proctype Worker(byte me) {
  byte mine, at, seen;
  bool early;                   /* PartitionRunner.preemptive */
  mtype result;
end_idle:
  do
  :: atomic { told[me] -> early = false };
     goto term
  :: atomic { !told[me] && alarms > 0 -> alarms--; early = true };     /* Standby.silent */
     goto term
  od;
term:
  atomic { at = 0; seen = 0; fold(at, stable, seen); owns[me] = (told[me] -> TAKING_OVER : NOT_OWNED) };
  if
  :: atomic { !early && !told[me] -> result = REFUSED }                /* _move_while_assigned */
#ifdef GROUP_FOR_FENCE
  :: atomic { told[me] && !early && epoch[0] > 0 -> mine = epoch[0]; result = DONE }
  :: atomic { early || (told[me] && epoch[0] == 0) };
     init_producer_id(0, mine, result)
#else
  :: atomic { early || told[me] };
     init_producer_id(0, mine, result)
#endif
  fi;
  if
  :: atomic { result == DONE && log_end == stable ->
       assert(epoch[0] < MOST_EPOCHS);                                 /* it comes to rest */
       fold(at, log_end, seen); owns[me] = OWNED(mine) }
  :: atomic { result == DONE && epoch[0] != mine -> result = REFUSED }
  :: result != DONE
  fi;
end_firing:
  do
  :: result == DONE && seen < EVENTS ->
       write_fired(0, mine, seen, result);
       if :: result == DONE -> write_row(0, mine, seen + 1, at, result) :: else fi;
       if
       :: result == DONE -> commit(0, mine, me, result);
            if :: atomic { result == DONE -> seen++; owns[me] = OWNED(mine) } :: else fi
       :: else
       fi
  /* An idle owner commits now and then (Upkeep), and hears that it was fenced off. */
  :: atomic { result == DONE && seen == EVENTS && epoch[0] != mine -> result = REFUSED }
  :: result != DONE -> break
  od;
  atomic { owns[me] = 0; mine = 0; at = 0; seen = 0 };
  if
  :: atomic { result == CRASHED ->      /* its session is over some day; started anew, it joins */
       told[me] = false; early = false; asks[me] = true }
  :: atomic { result == UNKNOWN -> skip }                              /* told: another term */
  :: atomic { result == REFUSED && !told[me] -> skip }
#ifndef NEVER_ASKS
  :: atomic { result == REFUSED && told[me] -> asks[me] = true };      /* Owners._may_restart */
#else
  :: result == REFUSED && told[me];
#endif
     /* its answer is acted on at once; the same answer again: it is this worker's */
end_waits:
#ifdef NEVER_ASKS
     !told[me]
#else
     !asks[me] && told[me] == (assigned == me)
#endif
  fi;
#ifdef EARLY_AGAIN
  if
  :: atomic { early && result == REFUSED && !told[me] -> result = NOTHING }; goto term
  :: else
  fi;
#endif
  atomic { result = NOTHING; early = false };
  goto end_idle
}

/* `group/group.py` Group and `balance/assignment.py`: who shows the higher epoch owns the partition.
   A rebalance waits for all members, so each has heard of the last one before the next begins. */
#define all_told (told[0] == (assigned == 0) && told[1] == (assigned == 1))

active proctype Leader() {
end:
  do
  :: atomic { moves > 0 && all_told -> moves--; assigned = 1 - assigned }
  :: atomic { asks[0] && all_told -> asks[0] = false; assigned = (owns[1] > owns[0] -> 1 : 0) }
  :: atomic { asks[1] && all_told -> asks[1] = false; assigned = (owns[0] > owns[1] -> 0 : 1) }
  :: atomic { told[0] != (assigned == 0) -> told[0] = (assigned == 0) }
  :: atomic { told[1] != (assigned == 1) -> told[1] = (assigned == 1) }
  od
}

/* Nothing moves any more: what has to be true then. */
active proctype Rest() {
end:
  atomic { timeout && txn[0] == EMPTY ->
    assert(visible[0] == 1);
    assert(owns[assigned] > TAKING_OVER && told[assigned]);
    assert(owns[1 - assigned] == NOT_OWNED && !told[1 - assigned]) }
}

init { atomic { run Worker(0); run Worker(1) } }
