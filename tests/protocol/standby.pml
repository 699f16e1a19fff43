/* A standby follows the changelog, and is promoted: what it may read, and up to where.
 *
 * The changelog is a log of records and of marks that end transactions.  A reader of committed
 * records sees what lies before the *last stable offset*: the first record of the first transaction
 * that is still open, whoever began it.  The owner commits one event with each record; a stranger
 * may open a transaction of its own in between, and end it when it likes.
 *
 *     model             code
 *     Owner             partitions/owner.py PartitionRunner._step
 *     Standby, follows  partitions/standby.py Standby._read; store/replay.py Replay.apply
 *     fence             recovery/takeover.py TakeOver.run, producer.open()
 *     end               recovery/fenced_end.py FencedEnd.__call__, from log_end() and ends()
 *     seq               store/layout/records.py Manifest.txn_seq, checked by store/replay.py Replay
 *
 * Invariants: the new owner begins with exactly what was committed, so nothing fires twice and
 * nothing is left out; the numbers in what a reader sees have no gap.
 */
#ifndef LENGTH
#define LENGTH 6
#endif
#define OPEN 0
#define COMMITTED 1
#define ABORTED 2

byte size;                     /* the log's end */
byte seq[LENGTH + 1];          /* number of the step; 0: a stranger's record */
byte state[LENGTH + 1];        /* how its transaction ended */
byte stable;                   /* the last stable offset */
byte epoch = 1;
byte fired;                    /* committed steps; each fires the event of its number */
bool owned_by_standby;

inline settle() {
  /* Markers are there: readers may go on to the next open transaction. */
  do
  :: stable < size && state[stable] != OPEN -> stable++
  :: else -> break
  od
}

active proctype Owner() {
  byte w, at;
  do
  :: atomic { epoch == 1 && size < LENGTH && w < 3 -> at = size; seq[at] = w + 1; state[at] = OPEN; size++ }
     if
     :: atomic { epoch == 1 -> state[at] = COMMITTED; settle(); w++; fired++; assert(fired == w) }
     :: atomic { epoch == 1 -> state[at] = ABORTED; settle() }
     :: epoch != 1 -> break                   /* the fence has rolled it back */
     fi
  :: epoch != 1 -> break
  :: w == 3 || size == LENGTH -> break
  od
}

/* Anybody who may write to the changelog: its records are passed over, its transactions are not. */
active proctype Stranger() {
  byte at;
  if
  :: atomic { size < LENGTH -> at = size; seq[at] = 0; state[at] = OPEN; size++ }
     if
     :: atomic { true -> state[at] = COMMITTED; settle() }
     :: atomic { true -> state[at] = ABORTED; settle() }
     fi
  :: true
  fi
}

#ifdef BUG_READS_UNCOMMITTED
#define READABLE size
#define SEEN(at) true
#else
#define READABLE stable
#ifdef BUG_KEEPS_ABORTED
#define SEEN(at) true
#else
#define SEEN(at) (state[at] == COMMITTED)
#endif
#endif

inline follow() {
  /* One record: folded where it is a step's, and its number has to be the next one. */
  if
  :: seq[pos] > 0 && SEEN(pos) ->
     assert(seq[pos] == w + 1);
     w = seq[pos]
  :: else
  fi;
  pos++
}

active proctype Standby() {
  byte pos, w, end_, i;
  do
  :: atomic { pos < READABLE -> follow() }
  :: break                                     /* promoted, or the owner seems silent */
  od;
#ifdef BUG_LOSES_PLACE
  if :: pos > 0 -> pos = pos - 1 :: else fi;   /* its position, kept apart from what it folded */
#endif
#ifdef BUG_END_BEFORE_FENCE
  end_ = size;
#endif
  atomic { epoch = 2;                          /* the fence rolls back what the owner had open */
    i = 0;
    do
    :: i == size -> break
    :: i < size -> if :: seq[i] > 0 && state[i] == OPEN -> state[i] = ABORTED :: else fi; i++
    od;
    i = 0; settle() };
#ifndef BUG_END_BEFORE_FENCE
#ifdef BUG_END_IS_LAST_STABLE
  end_ = stable;
#else
  /* The end of the log, once nothing is hidden before it. */
  end_ = size;
  stable >= end_;
#endif
#endif
  do
  :: atomic { pos < end_ && pos < READABLE -> follow() }
  :: pos >= end_ -> break
  od;
  owned_by_standby = true;
  assert(w == fired)                           /* fewer: fired again; more: never fired */
}
