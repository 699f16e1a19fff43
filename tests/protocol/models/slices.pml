/* Chapter 6, a group that does not fit one transaction: it moves in slices.

   Two schedules of one group are due, and event 0 has to come out before event 1.  Their home gives them
   away one by one, in an order that nobody asks about:

       home      [ row → input of the other; tombstone; leaving ]   [ row, END → input of the other; gone ]
       other                                                        … row, row, END: it fires

   Each slice is a transaction, so the rule of `moves.pml` holds for each row.  What is new is the time in
   between: neither side fires, and requests wait at the home, for nobody has all of the group.  Two workers
   take the home over from one another; with ALONE each partition has one, which may be killed and comes back.

   What has to hold: each event fires once, 0 before 1; the request is judged where all of the group lies,
   and once; and at rest, where both partitions have owners, all of that has happened.

   planted bug         what it does
   FIRES_LEAVING       fires at the home what has not left yet
   FIRES_ARRIVING      fires what has arrived before all of the group has
   LEAVING_FORGOTTEN   keeps in memory that the group is leaving, and not in the changelog
   SENT_BETWEEN        sends the request on between two slices */

#ifndef FAULTS
#define FAULTS 1
#endif
#ifdef ALONE
#define TERMS 2
#define SENDERS 2
#else
#define TERMS 1
#define SENDERS 3
#endif

#define HOME 0
#define OTHER 1
#define IDS 2
#define REPEATS 0
#define MOST 8

#include "kafka.pml"

mtype = { OPEN, COMMITTED, ABORTED };

/* Records of inputs: ROW and the number of a schedule, and whether it has fired. */
#define REQUEST 1
#define MOVE 2
#define END 3
#define ROW 10
#define FIRED_ROW 12

/* Where a group stands in a partition; WAITS: so does the request. */
#define NONE 0
#define ALL 1
#define LEAVING 2
#define GONE 3

typedef Input { byte kind[MOST]; mtype state[MOST]; byte end };
typedef Standing { byte position, group; bool here[2], over[2], waits };

Input input[2];
Standing stands[2];             /* the changelogs: what is committed, */
Standing row[IDS];              /* and what an open transaction says */
bool written[IDS];
byte fired[IDS];                /* the event in an open transaction + 1; 0: none */
bool told[IDS];                 /* the outcome of the request */
byte fires, judged;             /* what readers of committed records find */
bool owns[SENDERS];

inline append(partition, what, is) {
  assert(input[partition].end < MOST);         /* a bound of the model, not of the protocol */
  input[partition].kind[input[partition].end] = what;
  input[partition].state[input[partition].end] = is;
  input[partition].end++
}

inline copy(to, from) {
  to.position = from.position; to.group = from.group; to.waits = from.waits;
  to.here[0] = from.here[0]; to.here[1] = from.here[1];
  to.over[0] = from.over[0]; to.over[1] = from.over[1]
}

inline clear(what) {
  what.position = 0; what.group = NONE; what.waits = false;
  what.here[0] = false; what.here[1] = false; what.over[0] = false; what.over[1] = false
}

inline marker(id, place, is_commit) {
  d_step {
    byte i = 0;
    if
    :: place == OUTPUTS ->
         if
         :: is_commit && fired[id] > 0 -> assert(fired[id] == fires + 1); fires++   /* once, in order */
         :: else
         fi;
         judged = judged + (is_commit && told[id]);
         fired[id] = 0; told[id] = false;
         do                                    /* only the home writes into the other's input */
         :: id == HOME && i < input[OTHER].end ->
              if
              :: input[OTHER].state[i] == OPEN ->
                   input[OTHER].state[i] = (is_commit -> COMMITTED : ABORTED)
              :: else
              fi;
              i++
         :: else -> break
         od
    :: place == RECORDS ->
         if
         :: is_commit && written[id] -> copy(stands[id], row[id])
         :: else
         fi;
         written[id] = false; clear(row[id])
    fi;
    i = 0
  }
}

inline completed(id) { skip }

#include "coordinator.pml"

#define may_begin(id) (epoch[id] == mine && txn[id] == EMPTY)

inline write_and_commit(id) {
  if
  :: atomic { epoch[id] == mine && txn[id] == ONGOING ->
       copy(row[id], now); written[id] = true; result = DONE }
  :: atomic { epoch[id] != mine || txn[id] != ONGOING -> result = REFUSED }
  :: atomic { crash(result) }
  fi;
#ifdef LEAVING_FORGOTTEN
  row[id].group = (row[id].group == LEAVING -> ALL : row[id].group);
#endif
  if :: result == DONE -> commit(id, mine, me, result) :: else fi
}

inline judge(id) {
  assert(now.here[0] && now.here[1]);                          /* where all of the group lies */
  told[id] = true
}

inline take_request(id) {
  if
#ifdef SENT_BETWEEN
  :: now.group == LEAVING || now.group == GONE -> append(OTHER, REQUEST, OPEN)
#else
  :: now.group == LEAVING -> now.waits = true
  :: now.group == GONE -> append(OTHER, REQUEST, OPEN)
#endif
  :: now.group == ALL || now.group == NONE -> judge(id)
  fi
}

inline take(id, what) {
  if
  :: what == REQUEST -> take_request(id)
  :: what == MOVE -> now.group = LEAVING
  :: what == END -> now.group = ALL
  :: else ->
       now.here[(what - ROW) % 2] = true;
       now.over[(what - ROW) % 2] = (what >= FIRED_ROW)
  fi
}

inline send_slice(which) {
  append(OTHER, (now.over[which] -> FIRED_ROW : ROW) + which, OPEN);
  now.here[which] = false;
  if
  :: now.here[1 - which]
  :: else ->
       append(OTHER, END, OPEN); now.group = GONE;
       if :: now.waits -> append(OTHER, REQUEST, OPEN); now.waits = false :: else fi
  fi
}

#if defined(FIRES_LEAVING)
#define may_fire (now.group == ALL || now.group == LEAVING)
#elif defined(FIRES_ARRIVING)
#define may_fire (now.group == ALL || now.group == NONE)
#else
#define may_fire (now.group == ALL)
#endif
/* What is due of a group leaves in order, as far as it is here. */
#define due(which) (now.here[which] && !now.over[which])

proctype Worker(byte me; byte id; byte terms) {
  byte mine;
  Standing now;
  mtype result;
end:
  do
  :: terms > 0 ->
       terms--;
       init_producer_id(id, mine, result);
       atomic { if :: result == DONE -> copy(now, stands[id]); owns[me] = true :: else fi };
end_working:
       do
       :: atomic { result == DONE && now.position < input[id].end &&
                   input[id].state[now.position] == ABORTED -> now.position++ }
       :: atomic { result == DONE && may_fire && (due(0) || due(1)) && may_begin(id) ->
            txn[id] = ONGOING;
            if
            :: due(0) -> fired[id] = 1; now.over[0] = true
            :: else -> fired[id] = 2; now.over[1] = true
            fi };
            write_and_commit(id)
       :: atomic { result == DONE && now.position < input[id].end &&
                   input[id].state[now.position] == COMMITTED && may_begin(id) ->
            txn[id] = ONGOING; take(id, input[id].kind[now.position]); now.position++ };
            write_and_commit(id)
       :: atomic { result == DONE && now.group == LEAVING && may_begin(id) ->
            txn[id] = ONGOING;
            if
            :: now.here[0] -> send_slice(0)
            :: now.here[1] -> send_slice(1)
            fi };
            write_and_commit(id)
       :: atomic { result == DONE && epoch[id] != mine -> result = REFUSED }
       :: atomic { result != DONE -> break }
       od;
       atomic { owns[me] = false; mine = 0; clear(now); result = NOTHING }
  :: else -> break
  od
}

/* It comes at any time. */
active proctype Client() {
  atomic { input[HOME].end > 0 -> append(HOME, REQUEST, COMMITTED) }
}

active proctype Rest() {
end:
  atomic { timeout && (owns[0] || owns[SENDERS - 1] && SENDERS == 3) && owns[1] ->
    assert(judged == 1);                                       /* the request has its outcome */
    assert(fires == 2) }                                       /* nothing is lost */
}

init {
  atomic {
    stands[HOME].group = ALL; stands[HOME].here[0] = true; stands[HOME].here[1] = true;
    append(HOME, MOVE, COMMITTED);
    run Worker(0, HOME, TERMS); run Worker(1, OTHER, TERMS);
#ifndef ALONE
    run Worker(2, HOME, TERMS)
#endif
  }
}
