/* Chapter 3: a standby follows the changelog, and is promoted.

   The standby reads while the owner writes, up to the last stable offset, and folds what was committed.
   At any moment it is promoted: it reads what is left, fences, asks for the end, and reads up to that.
   A stranger may have a transaction open in the changelog, which hides what the owner commits behind it:

       committed ──┬ a stranger's, open ┬── event 0 fired, committed, hidden ──┐
        last stable offset                                                 log end

   So the end that counts is the log's, and nobody fires before all of it can be read.  Events are judged
   as in chapter 1, and at rest every one of them has fired.

   planted bug           what it does
   READS_UNCOMMITTED     lets the standby fold what is not decided yet
   HIDDEN_IGNORED        takes the last stable offset for the end of the changelog
   REST_UNREAD           fires on what the standby had folded, without reading on behind the fence */

#define IDS 2                   /* 1 is the stranger's */
#define SENDERS 2
#define EVENTS 2
#define LOG 9
#ifndef FAULTS
#define FAULTS 1
#endif
#define REPEATS 1
#define FIRST_EPOCH 1           /* the owner's */

#include "kafka.pml"
#include "changelog.pml"
#include "coordinator.pml"

byte kept_at, kept;             /* the standby's local store */

inline fire_all(me, mine, seen, at, result) {
  do
  :: result == DONE && seen < EVENTS ->
       write_fired(0, mine, seen, result);
       if :: result == DONE -> write_row(0, mine, seen + 1, at, result) :: else fi;
       if
       :: atomic { result == DONE && faults > 0 -> faults-- }; roll_back(0, mine, result)
       :: result == DONE -> commit(0, mine, me, result);
            if :: result == DONE -> seen++ :: else fi
       :: else
       fi
  :: else -> break
  od
}

/* The owner: it fires until it is fenced, is killed, or knows no more. */
active proctype Owner() {
  byte mine = FIRST_EPOCH, seen, at;
  mtype result = DONE;
  fire_all(0, mine, seen, at, result)
}

/* `partitions/standby.py` Standby, then `recovery/takeover.py` TakeOver.run with its work (Warm). */
active proctype Follower() {
  byte mine, seen, at;
  mtype result;
follow:
  do
#ifdef READS_UNCOMMITTED
  :: atomic { at < log_end ->
       seen = (log_row[at] > 0 -> log_row[at] : seen);
       at++; kept_at = at; kept = seen }
#else
  :: atomic { at < stable ->
       seen = (log_mark[at] == COMMITTED && log_row[at] > 0 -> log_row[at] : seen);
       at++; kept_at = at; kept = seen }
#endif
  :: atomic { crash(result); at = kept_at; seen = kept; result = NOTHING }     /* started anew */
  :: break                                              /* promoted, by the group or ahead of it */
  od;
  init_producer_id(0, mine, result);
#ifdef REST_UNREAD
  skip;
#elif defined(HIDDEN_IGNORED)
  atomic { fold(at, stable, seen) };
#else
  atomic { log_end == stable -> fold(at, log_end, seen) };             /* FencedEnd */
#endif
  atomic { kept_at = at; kept = seen };
  fire_all(1, mine, seen, at, result);
  if
  :: atomic { result != DONE -> mine = 0; at = kept_at; seen = kept; result = NOTHING }; goto follow
  :: else
  fi
}

/* Somebody else writes to the changelog, in a transaction of its own. */
active proctype Stranger() {
  if
  :: atomic { txn[1] = ONGOING; append(1, 0) };
     if
     :: atomic { txn[1] == ONGOING -> txn[1] = ABORTING }
     :: txn[1] != ONGOING               /* its time-out was over */
     fi
  :: skip
  fi
}

active proctype Rest() {
end:
  atomic { timeout && txn[0] == EMPTY && txn[1] == EMPTY -> assert(visible[0] == 1 && visible[1] == 1) }
}
