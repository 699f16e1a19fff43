/* Chapter 6: a group of tenants moves from one partition to another.

   A tenant's requests come to its home, the partition that its name hashes to, for ever.  Its schedules
   may lie elsewhere: the home knows where, by a row of its changelog, and sends requests on.  So there is
   one way for all requests of a tenant, and no map that somebody could read too late.

   To move is to write requests.  One transaction of the partition that gives the group away writes its
   rows into the input of the one that takes it, and tombstones into its own changelog:

       from home     home   MOVE ─► [ rows to the input of 1; tombstones; at: 1 ]
       from 1        home   MOVE ─► [ GIVE to the input of 1; at: held ]     requests wait in the changelog
                     1      GIVE ─► [ rows to the input of 2; tombstones; GIVEN to the input of home ]
                     home   GIVEN ─► [ at: 2; what waited goes to the input of 2 ]

   Who is given a group reads the rows from its input as it reads requests: once, and in order.  There is
   one schedule here, which is due, and two requests are about it.  The group moves from its home to
   partition 1; with AWAY from partition 1 to its home, and with THIRD from there to partition 2.  The
   partition CONTENDED has two workers that take it over from one another.

   What has to hold: the event fires once; each request has one outcome, in the order in which they came to
   the home, and where the schedule lies; and at rest, where every partition has an owner, all of that has
   happened.

   planted bug        what it does
   ROWS_APART         sends the rows in a transaction behind that of the tombstones
   TOMBSTONES_APART   writes the tombstones in a transaction behind that of the rows
   ROWS_UNDECIDED     takes rows in whose transaction is not decided yet
   SENT_BY_MAP        lets a forwarder send requests to where the group lies by now, and not to its home
   NOT_HELD           sends requests on to who is asked to give the group away
   HELD_IN_MEMORY     keeps requests that wait in memory, and not in the changelog
   RELEASED_EARLY     sends what waits to the new place before the group is there */

#ifdef THIRD
#define AWAY
#define PARTITIONS 3
#define PLACES 3
#define TARGET 2
#else
#define PARTITIONS 2
#ifdef AWAY
#define TARGET HOME
#else
#define TARGET 1
#endif
#endif
#ifndef CONTENDED
#define CONTENDED HOME
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#define REQUESTS 2

#define HOME 0
#define IDS PARTITIONS          /* belfry.<partition> */
#define THERE 2                 /* the input of partition 2; the others are among OUTPUTS */
#ifdef ALONE
#define TERMS 2
#define SENDERS PARTITIONS
#else
#define TERMS 1
#define SENDERS (PARTITIONS + 1)
#endif
#define REPEATS 0
#define MOST 9

#include "kafka.pml"

mtype = { OPEN, COMMITTED, ABORTED };

/* Records of inputs: a request's number, or one of these and a partition (ROWS: whether it is over). */
#define MOVE 10
#define GIVE 20
#define ROWS 30
#define GIVEN 40

typedef Input { byte kind[MOST]; mtype state[MOST]; byte writer[MOST]; byte end };
typedef Standing {
  byte position;                /* of the input */
  bool here, over;              /* the schedule's row is here; it has fired */
  byte at, first, waits;        /* of the home: where the group lies, and the requests that wait */
  bool held
};

Input input[PARTITIONS];        /* belfry.schedules/<partition> */
Standing stands[PARTITIONS];       /* belfry.changelog/<partition>: what is committed, */
Standing row[IDS];                 /* and what an open transaction says */
bool written[IDS];
byte first_told[IDS], told[IDS];    /* outcomes in an open transaction: the first request, how many */
bool fired[IDS];
byte judged, fires;             /* what readers of committed records find */
bool owns[SENDERS];

inline append(partition, what, id, is) {
  assert(input[partition].end < MOST);         /* a bound of the model, not of the protocol */
  input[partition].kind[input[partition].end] = what;
  input[partition].writer[input[partition].end] = id;
  input[partition].state[input[partition].end] = is;
  input[partition].end++
}

inline decide(partition, id, is_commit) {
  i = 0;
  do
  :: i < input[partition].end ->
       if
       :: input[partition].state[i] == OPEN && input[partition].writer[i] == id ->
            input[partition].state[i] = (is_commit -> COMMITTED : ABORTED)
       :: else
       fi;
       i++
  :: else -> break
  od;
  i = 0
}

inline marker(id, place, is_commit) {
  d_step {
    byte i = 0;
    if
    :: place == OUTPUTS ->
         if
         :: is_commit && told[id] > 0 ->
              assert(first_told[id] == judged + 1);            /* one outcome, in order */
              judged = judged + told[id]
         :: else
         fi;
         fires = fires + (is_commit && fired[id]);
         assert(fires <= 1);                                   /* it fires once */
         told[id] = 0; first_told[id] = 0; fired[id] = false;
         decide(HOME, id, is_commit); decide(1, id, is_commit)
    :: place == RECORDS ->
         if
         :: is_commit && written[id] -> copy(stands[id], row[id])
         :: else
         fi;
         written[id] = false; clear(row[id])
#ifdef THIRD
    :: place == THERE -> decide(2, id, is_commit)
#endif
    fi
  }
}

inline copy(to, from) {
  to.position = from.position; to.here = from.here; to.over = from.over; to.at = from.at;
  to.first = from.first; to.waits = from.waits; to.held = from.held
}

inline clear(what) {
  what.position = 0; what.here = false; what.over = false; what.at = 0;
  what.first = 0; what.waits = 0; what.held = false
}

inline completed(id) { skip }

#include "coordinator.pml"

/* A transaction begins with its first record; `mine` is the epoch of who writes. */
#define may_begin(id) (epoch[id] == mine && txn[id] == EMPTY)

inline write_row(id) {
  if
  :: atomic { epoch[id] == mine && txn[id] == ONGOING ->
       copy(row[id], now); written[id] = true; result = DONE }
  :: atomic { epoch[id] != mine || txn[id] != ONGOING -> result = REFUSED }
  :: atomic { crash(result) }
  fi
}

inline judge(id, number, many) {
  assert(now.here);                                            /* where the schedule lies */
  first_told[id] = number; told[id] = many
}

/* The rows of the group go to another partition. */
inline hand_over(id, to) {
#ifdef ROWS_APART
  later = to + 1; now.here = false
#else
  append(to, ROWS + now.over, id, OPEN);
#ifdef TOMBSTONES_APART
  later = to + 1
#else
  now.here = false
#endif
#endif
}

inline release(id, to) {
  if
  :: to == id && now.waits > 0 -> judge(id, now.first, now.waits)
  :: else ->
       do
       :: to != id && now.waits > 0 -> append(to, now.first, id, OPEN); now.first++; now.waits--
       :: else -> break
       od
  fi;
  now.first = 0; now.waits = 0
}

inline take_request(id, number) {
  if
#ifndef NOT_HELD
  :: id == HOME && now.held ->
       now.first = (now.waits == 0 -> number : now.first); now.waits++
  :: id == HOME && !now.held && now.at != HOME -> append(now.at, number, id, OPEN)
#else
  :: id == HOME && now.at != HOME -> append(now.at, number, id, OPEN)
#endif
  :: else -> judge(id, number, 1)
  fi
}

inline ask_for_it(id, to) {
  append(now.at, GIVE + to, id, OPEN);
#ifdef RELEASED_EARLY
  now.at = to
#else
  now.held = true
#endif
}

/* A MOVE at the home, or a GIVE where the group lies. */
inline give_away(id, to) {
  hand_over(id, to);
  if
  :: id == HOME -> now.at = to
  :: else -> append(HOME, GIVEN + to, id, OPEN)
  fi
}

#define at_home (now.at == HOME)        /* elsewhere than at the home `at` is never set */

inline take(id, what) {
  if
  :: what < MOVE -> take_request(id, what)
  :: what >= MOVE && what < ROWS && !at_home -> ask_for_it(id, what % MOVE)
  :: what >= MOVE && what < ROWS && at_home -> give_away(id, what % MOVE)
  :: what >= ROWS && what < GIVEN -> now.here = true; now.over = (what - ROWS == 1)
  :: else -> now.at = what - GIVEN; now.held = false; release(id, now.at)
  fi
}

#ifdef ROWS_UNDECIDED
#define decided(id) (input[id].state[now.position] != ABORTED)
#else
#define decided(id) (input[id].state[now.position] == COMMITTED)
#endif

/* A worker that owns a partition: it fires what is due, and takes its input in. */
proctype Worker(byte me; byte id; byte terms) {
  byte mine;
  byte later;                   /* what a planted bug does in a transaction of its own */
  Standing now;
  mtype result;
end:
  do
  :: terms > 0 ->
       terms--;
       init_producer_id(id, mine, result);
       atomic { if :: result == DONE -> copy(now, stands[id]); owns[me] = true :: else fi };
#ifdef HELD_IN_MEMORY
       now.waits = 0;
#endif
end_working:
       do
       :: atomic { result == DONE && now.position < input[id].end &&
                   input[id].state[now.position] == ABORTED -> now.position++ }
       :: atomic { result == DONE && now.here && !now.over && may_begin(id) ->
            txn[id] = ONGOING; fired[id] = true; now.over = true };
            write_row(id);
            if :: result == DONE -> commit(id, mine, me, result) :: else fi
       :: atomic { result == DONE && now.position < input[id].end && decided(id) && may_begin(id) ->
            txn[id] = ONGOING; take(id, input[id].kind[now.position]); now.position++ };
#ifdef TOMBSTONES_APART
            now.position = now.position - (later > 0);
#endif
            write_row(id);
            if :: result == DONE -> commit(id, mine, me, result) :: else fi;
#if defined(ROWS_APART) || defined(TOMBSTONES_APART)
            if
            :: atomic { result == DONE && later > 0 && may_begin(id) ->
                 txn[id] = ONGOING;
#ifdef ROWS_APART
                 append(later - 1, ROWS + now.over, id, OPEN)
#else
                 now.here = false; now.position++
#endif
                 }
                 write_row(id);
                 if :: result == DONE -> commit(id, mine, me, result) :: else fi
            :: atomic { result == DONE && later > 0 && epoch[id] != mine -> result = REFUSED }
            :: result != DONE || later == 0
            fi;
            later = 0;
#endif
       :: atomic { result == DONE && epoch[id] != mine -> result = REFUSED }
       :: atomic { result != DONE -> break }
       od;
       atomic { owns[me] = false; mine = 0; later = 0; clear(now); result = NOTHING }
  :: else -> break
  od
}

/* The last request comes at any time, the others are there before anything is read.  They go to the home,
   whether the group lies there or not. */
active proctype Client() {
  atomic { input[HOME].end > 0 ->
#ifdef SENT_BY_MAP
    append(stands[HOME].at, REQUESTS, HOME, COMMITTED)
#else
    append(HOME, REQUESTS, HOME, COMMITTED)
#endif
  }
}

/* Partition i has worker i, and the one that is CONTENDED has the last one as well. */
#define owned(id) (owns[id] || (id == CONTENDED && owns[SENDERS - 1]))

active proctype Rest() {
end:
  atomic { timeout && owned(0) && owned(1) && owned(PARTITIONS - 1) ->
    assert(judged == REQUESTS);                                /* each has its outcome */
    assert(fires == 1) }                                       /* nothing is lost */
}

init {
  atomic {
#ifdef AWAY
    stands[1].here = true; stands[HOME].at = 1;
#else
    stands[HOME].here = true;
#endif
    /* `belfry rebalance apply`, before or behind the first request. */
    if
    :: append(HOME, 1, HOME, COMMITTED); append(HOME, MOVE + TARGET, HOME, COMMITTED)
    :: append(HOME, MOVE + TARGET, HOME, COMMITTED); append(HOME, 1, HOME, COMMITTED)
    fi;
    run Worker(0, 0, TERMS); run Worker(1, 1, TERMS);
#ifdef THIRD
    run Worker(2, 2, TERMS);
#endif
#ifndef ALONE
    run Worker(SENDERS - 1, CONTENDED, TERMS)
#endif
  }
}
