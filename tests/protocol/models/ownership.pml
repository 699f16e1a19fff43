/* Chapter 1: one owner at a time, though two workers believe that they own the partition.

   Both workers take the partition over whenever they like, which is more than any group would allow: A
   twice, B once.  Either may be paused between any two of its steps, for as long as the other one needs to take over
   and fire; SPIN tries all of these orders.  Either may crash at any step, and lose its local store.

       A   takes over   begin  fired  row ┄┄┄┄┄┄┄┄ paused ┄┄┄┄┄┄┄┄┄┄┄┄  EndTxn: refused, A stops
       B                                  takes over: fence, end?, read  begin  fired  row  EndTxn

   With IN_TURN each of them uses two transactional ids, step by step, and a take-over fences one after
   the other (`transactions/alternating.py`).  A step waits for no marker of the step before it:

       A   fences 0, 1   step: id 0, EndTxn ┄ paused ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄  step: id 1, refused, A stops
       B                                      fences 0, 1: waits for markers, end?, read   step: id 0

   What has to hold: no event is visible twice, none that a manifest calls fired is missing, and the
   watermark only grows.  `changelog.pml` asserts it at each marker.

   planted bug           what it does
   END_BEFORE_FENCE      asks for the end of the changelog before the fence
   ID_PER_WORKER         gives each worker a transactional id of its own: the fence meets nobody
   STORE_FIRST           writes the local store before the transaction is committed
   UNKNOWN_RETRIED       does a step again whose end is unknown, instead of taking over anew
   SECOND_UNFENCED       fences the second of two ids when it is first used, and not at the take-over
   END_REPEATED          sends EndTxn again in protocol 1: the gap that docs/guarantees.md tells of */

#ifdef SECOND_UNFENCED
#define IN_TURN
#endif
#if defined(ID_PER_WORKER)
#define IDS 2
#define ID me
#elif defined(IN_TURN)
#define IDS 2
#define ID turn
#else
#define IDS 1
#define ID 0
#endif
#define MINE mine[ID]
#define SENDERS 2
#define EVENTS 2
#define LOG 8
#ifndef FAULTS
#define FAULTS 1
#endif
#define REPEATS 1
#define RACES 1
#define TERMS_OF_A 2            /* so often A takes the partition over, and B once */
#define TERMS_OF_B 1

#include "kafka.pml"
#include "changelog.pml"
#include "coordinator.pml"

byte kept_at[2], kept[2];       /* the local store of a worker: up to which offset, and the watermark */

/* `partitions/owner.py` PartitionRunner._begin_term, and `recovery/takeover.py` TakeOver.run. */
proctype Worker(byte me; byte terms) {
  byte mine[IDS];
  byte at, seen, end_at;
#ifdef IN_TURN
  byte turn;
#endif
  mtype result;
  do
  :: terms > 0 ->
       /* 1: catch up, unfenced.  The former owner still fires. */
       atomic { terms--; at = kept_at[me]; seen = kept[me]; fold(at, stable, seen) }
#ifdef END_BEFORE_FENCE
       atomic { log_end == stable -> end_at = log_end }
#endif
       /* 2: fence.  3: ask for the end.  4: read the rest. */
       init_producer_id(ID, MINE, result);
#if defined(IN_TURN) && !defined(SECOND_UNFENCED)
       if :: result == DONE -> init_producer_id(1, mine[1], result) :: else fi;
#endif
       atomic {
#ifndef END_BEFORE_FENCE
         log_end == stable -> end_at = log_end;
#endif
         fold(at, end_at, seen);
         if :: result == DONE -> kept_at[me] = at; kept[me] = seen :: else fi
       }
       /* 9: fire, a step for each event.  Fenced, or an end that is unknown, ends the term. */
       do
       :: seen < EVENTS && result == DONE ->
#ifdef SECOND_UNFENCED
            if :: MINE == 0 -> init_producer_id(ID, MINE, result) :: else fi;
#endif
            write_fired(ID, MINE, seen, result);
            if :: result == DONE -> write_row(ID, MINE, seen + 1, at, result) :: else fi;
#ifdef STORE_FIRST
            if :: atomic { result == DONE -> kept[me] = seen + 1; kept_at[me] = at } :: else fi;
#endif
            if
            :: atomic { result == DONE && faults > 0 -> faults-- };      /* a topic refuses a record */
                 roll_back(ID, MINE, result)
            :: result == DONE ->
                 commit(ID, MINE, me, result);
                 if
                 :: atomic { result == DONE ->                           /* only now the local store */
                      seen++; kept[me] = seen; kept_at[me] = at }
                 :: atomic { result == DONE && crash(result) }
#ifdef UNKNOWN_RETRIED
                 :: atomic { result == UNKNOWN -> result = DONE }
#endif
                 :: else
                 fi
            :: else
            fi;
#ifdef IN_TURN
            turn = 1 - turn
#endif
       :: else -> break
       od;
       atomic {
         if
         :: result == CRASHED -> kept[me] = 0; kept_at[me] = 0           /* the disk is lost as well */
         :: true
         fi;
         mine[0] = 0; at = 0;
#ifdef IN_TURN
         mine[1] = 0; turn = 0;
#endif
         seen = 0; end_at = 0; result = NOTHING
       }
  :: else -> break
  od
}

init { atomic { run Worker(0, TERMS_OF_A); run Worker(1, TERMS_OF_B) } }
