/* One verdict for each request: outcome, effect and position in one transaction, and repeats.
 *
 * The input is a log of requests.  Its third one shows the id of the first: a repeat.  An owner
 * takes requests in by batches of one or two; each step writes their outcomes, their effects, what
 * is remembered of their ids, and the position, and may be rolled back, lost or unknown at any time.
 *
 *     model             code
 *     position          store/layout/records.py Manifest.position
 *     batch, from       partitions/source.py SourceBatch; engine/partition.py GapInSource
 *     known             store/layout/records.py "answered"; engine/reports.py
 *     write, commit     engine/partition.py seal; kafka/step_records.py; transactions/writer.py
 *     undo              engine/partition.py aborted
 *     take over         recovery/takeover.py TakeOver.run; engine/partition.py begin_at
 *
 * Invariants: each request gets one outcome, in its order, and each id takes effect once; the
 * position never falls; in the end every request has its outcome.
 */
#ifndef REQUESTS
#define REQUESTS 5
#endif
#define IDS 3
#define ID_OF(at) ((at) == 2 -> 0 : ((at) > 2 -> (at) - 1 : (at)))

byte position;                 /* the committed one: the next request to read */
byte outcomes[REQUESTS + 1];   /* committed outcomes of each request */
byte effects[REQUESTS + 1];    /* committed effects of each id */
bool known[REQUESTS + 1];      /* ids that the changelog remembers */
byte crashes = 2, rollbacks = 2, unknowns = 2, lost_batches = 1;

/* A transaction becomes visible as a whole. */
inline commit(first, last) {
  i = first;
  do
  :: i == last -> break
  :: i < last ->
     outcomes[i]++; assert(outcomes[i] == 1);
     if
     :: verdict[i] -> effects[ID_OF(i)]++; assert(effects[ID_OF(i)] == 1)
     :: else
     fi;
     known[ID_OF(i)] = true;
     i++
  od;
  i = 0
}

inline move_position(to) {
  assert(to >= position);
  position = to
}

active proctype Owner() {
  byte at, from, upto, i;
  bool store[REQUESTS + 1];    /* ids that this owner knows, in memory and in its local store */
  bool verdict[REQUESTS + 1];  /* whether a request of this step takes effect */

take_over:                     /* the fence, then all that is committed */
  atomic {
    i = 0;
    do
    :: i > REQUESTS -> break
    :: else ->
#ifndef BUG_STORE_KEPT
       store[i] = known[i];
#endif
       verdict[i] = false; i++
    od;
    i = 0; at = position; from = at; upto = at };

step:
  if
  :: at == REQUESTS -> goto over
  :: crashes > 0 && at < REQUESTS -> crashes--; goto take_over
  :: at < REQUESTS -> from = at
  :: lost_batches > 0 && at + 1 < REQUESTS -> lost_batches--; from = at + 1
  fi;
  if
  :: upto = from + 1
  :: from + 1 < REQUESTS -> upto = from + 2
  fi;
#ifndef BUG_GAP_NOT_NOTICED
  if :: from != at -> goto take_over :: else fi;     /* GapInSource */
#endif
  atomic {                     /* accept: the verdicts of the batch */
    i = from;
    do
    :: i == upto -> break
    :: i < upto ->
#ifdef BUG_NO_DEDUP
       verdict[i] = true;
#else
       verdict[i] = !store[ID_OF(i)];
#endif
       store[ID_OF(i)] = true; i++
    od;
    i = 0 };
#ifdef BUG_POSITION_FIRST
  atomic { move_position(upto) };
#endif
  if
  :: crashes > 0 -> crashes--; goto take_over
  :: rollbacks > 0 -> rollbacks--;                    /* Aborted: undone, and done again */
#ifdef BUG_STORE_NOT_UNDONE
     skip;
#else
     atomic { i = 0; do :: i > REQUESTS -> break :: else -> store[i] = known[i]; i++ od; i = 0 };
#endif
     goto step
  :: true ->
#ifdef BUG_POSITION_APART
     atomic { commit(from, upto) };
     if :: crashes > 0 -> crashes--; goto take_over :: true fi;
     atomic { move_position(upto) };
#else
#ifdef BUG_POSITION_FIRST
     atomic { commit(from, upto) };
#else
     atomic { commit(from, upto); move_position(upto) };
#endif
#endif
     if
     :: true -> at = upto; goto step
     :: unknowns > 0 -> unknowns--;                   /* committed, and its answer is lost */
#ifdef BUG_UNKNOWN_IS_ROLLED_BACK
        atomic { i = 0; do :: i > REQUESTS -> break :: else -> store[i] = known[i]; i++ od; i = 0 };
        goto step
#else
        goto take_over
#endif
     fi
  :: unknowns > 0 -> unknowns--; goto take_over       /* rolled back, and its answer is lost */
  fi;

over:
  assert(position == REQUESTS);
  atomic {
    i = 0;
    do
    :: i == REQUESTS -> break
    :: else -> assert(outcomes[i] == 1); assert(effects[ID_OF(i)] == 1); i++
    od }
}
