/* Chapter 4: a request, its outcome and the position behind it are one transaction.

   Requests lie in `belfry.schedules`.  There is one, and it comes once more, with the same request id,
   because its client got no answer.  The repeat lies in the same topic, or, with INPUTS, in an input
   topic of the tenant's own.  From there the owner of the partition hands it over by a transaction of a
   second transactional id, `inlets.<partition>`, together with the position behind it.

       inputs      t0 ──► [ request to belfry.schedules, position of the input topic ]    inlets.<p>
       requests    r0, r1 … ──► [ outcome to belfry.lifecycle, row with position and ids ]  <p>

   Two workers take the partition over, whenever they like.  Each reader of inputs follows its worker,
   and may go on for a while when that has lost the partition.

   What has to hold: each request has one outcome, and the first of an id is accepted and every other one
   a duplicate; what is handed over is handed over once; positions only grow; no outcome is told of a
   request that was rolled back; and at rest, where an owner is there, every request has its outcome.

   planted bug           what it does
   POSITION_APART        commits the position in a transaction behind that of the outcome
   IDS_IN_MEMORY         keeps the ids that were answered in memory, and not in the changelog
   SOURCE_UNCOMMITTED    reads requests that are not decided yet
   INPUT_POSITION_EARLY  asks for the position of the input before the fence of `inlets.<partition>` */

#define IDS 2
#define OWNER 0                 /* belfry.<partition> */
#define INLETS 1                /* belfry.inlets.<partition> */
#define SENDERS 4
#define MOST 5
#define TERMS 2
#ifndef FAULTS
#define FAULTS 1
#endif
#define REPEATS 0

#include "kafka.pml"

mtype = { OPEN, COMMITTED, ABORTED };

mtype state_of[MOST];           /* belfry.schedules: all records have the same request id */
byte log_end, stable;
bool handing;                   /* the open transaction of inlets holds the request, */
bool passing;                   /* and the position behind it */
byte handed, input_position;    /* what readers of committed records find of them */

byte told;                      /* the outcome in the owner's open transaction: offset + 1; 0: none */
bool accepts;
byte next_position;             /* its row; 0: none */
byte position;                  /* the last row that was committed, */
bool ids;                       /* and whether it remembers the request id */
byte outcomes[MOST], accepted;
bool owns[2];

inline find_stable() {
  stable = 0;
  do
  :: stable < log_end && state_of[stable] != OPEN -> stable++
  :: else -> break
  od
}

inline append(state) {
  d_step {
    assert(log_end < MOST);
    state_of[log_end] = state; log_end++;
    find_stable();
    skip
  }
}

inline marker(id, place, is_commit) {
  d_step {
    byte i = 0;
    if
    :: id == OWNER && place == OUTPUTS ->
         if
         :: is_commit && told > 0 ->
              outcomes[told - 1]++;
              assert(outcomes[told - 1] == 1);                         /* one outcome */
              assert(state_of[told - 1] == COMMITTED);                 /* of a request that is there */
              accepted = accepted + accepts;
              assert(accepted <= 1)                                    /* an id counts once */
         :: else
         fi;
         told = 0; accepts = false
    :: id == OWNER && place == RECORDS ->
         if
         :: is_commit && next_position > 0 ->
              assert(next_position > position);                        /* positions only grow */
              position = next_position; ids = true
         :: else
         fi;
         next_position = 0
    :: id == INLETS && place == OUTPUTS ->
         do
         :: i < log_end ->
              if
              :: state_of[i] == OPEN -> state_of[i] = (is_commit -> COMMITTED : ABORTED)
              :: else
              fi;
              i++
         :: else -> break
         od;
         i = 0;
         handed = handed + (is_commit && handing);
         assert(handed <= 1);                                          /* handed over once */
         handing = false;
         find_stable()
    :: id == INLETS && place == RECORDS ->
         if :: is_commit && passing -> input_position = 1 :: else fi;
         passing = false
    fi;
    i = 0
  }
}

/* What lies before the position has its outcome. */
inline completed(id) {
  d_step {
    byte k = 0;
    do
    :: id == OWNER && k < position ->
         assert(state_of[k] == ABORTED || outcomes[k] == 1);           /* nothing is lost */
         k++
    :: else -> break
    od;
    k = 0
  }
}

#include "coordinator.pml"

inline write_outcome(mine, at, is_first, result) {
  if
  :: atomic { epoch[OWNER] == mine && txn[OWNER] == EMPTY ->
       txn[OWNER] = ONGOING; told = at + 1; accepts = is_first; result = DONE }
  :: atomic { epoch[OWNER] != mine -> result = REFUSED }
  :: atomic { crash(result) }
  fi
}

inline write_position(mine, at, result) {
  if
#ifdef POSITION_APART
  :: atomic { epoch[OWNER] == mine && txn[OWNER] == EMPTY ->
       txn[OWNER] = ONGOING; next_position = at + 1; result = DONE }
#else
  :: atomic { epoch[OWNER] == mine && txn[OWNER] == ONGOING ->
       next_position = at + 1; result = DONE }
  :: atomic { epoch[OWNER] == mine && txn[OWNER] != ONGOING -> result = UNKNOWN }
#endif
  :: atomic { epoch[OWNER] != mine -> result = REFUSED }
  :: atomic { crash(result) }
  fi
}

#ifdef SOURCE_UNCOMMITTED
#define readable log_end
#else
#define readable stable
#endif

/* `partitions/owner.py` PartitionRunner: the take-over is chapter 1; here is what it takes in. */
proctype Worker(byte me; byte terms) {
  byte mine, at;
  bool known;                   /* the request id was answered */
  mtype result;
end:
  do
  :: terms > 0 ->
       terms--;
       init_producer_id(OWNER, mine, result);
       atomic { if :: result == DONE -> at = position; known = ids; owns[me] = true :: else fi };
#ifdef IDS_IN_MEMORY
       known = false;
#endif
end_taking:
       do
       :: atomic { result == DONE && at < readable && state_of[at] == ABORTED -> at++ }
       :: result == DONE && at < readable && state_of[at] != ABORTED ->
            /* `engine/reports.py` Reports.repeated: an id that was answered is a DUPLICATE. */
            write_outcome(mine, at, !known, result);
#ifdef POSITION_APART
            if :: result == DONE -> commit(OWNER, mine, me, result) :: else fi;
#endif
            if :: result == DONE -> write_position(mine, at, result) :: else fi;
            if :: result == DONE -> commit(OWNER, mine, me, result) :: else fi;
            atomic { if :: result == DONE -> known = true; at++ :: else fi }
       :: atomic { result == DONE && epoch[OWNER] != mine -> result = REFUSED }
       :: result != DONE -> break
       od;
       atomic { owns[me] = false; mine = 0; at = 0; known = false; result = NOTHING }
  :: else -> break
  od
}

/* `partitions/tenant_reading.py` TenantInputReading: open, then one hand-over. */
proctype Inputs(byte me; byte terms) {
  byte mine, at;
  mtype result;
end:
  do
  :: atomic { terms > 0 && owns[me] -> terms-- };
#ifdef INPUT_POSITION_EARLY
       at = input_position;
#endif
       init_producer_id(INLETS, mine, result);
#ifndef INPUT_POSITION_EARLY
       at = input_position;
#endif
       if
       :: result == DONE && at == 0 ->
            if
            :: atomic { epoch[INLETS] == mine && txn[INLETS] == EMPTY ->
                 txn[INLETS] = ONGOING; handing = true; append(OPEN) }
            :: atomic { epoch[INLETS] != mine -> result = REFUSED }
            :: atomic { crash(result) }
            fi;
            if
            :: atomic { result == DONE && epoch[INLETS] == mine && txn[INLETS] == ONGOING -> passing = true }
            :: atomic { result == DONE && (epoch[INLETS] != mine || txn[INLETS] != ONGOING) ->
                 result = REFUSED }
            :: result != DONE
            fi;
            if :: result == DONE -> commit(INLETS, mine, 2 + me, result) :: else fi
       :: else
       fi;
       atomic { mine = 0; at = 0; result = NOTHING }
  od
}

#define answered(at) (at >= log_end || state_of[at] == ABORTED || outcomes[at] == 1)

active proctype Rest() {
end:
  atomic { timeout && txn[OWNER] == EMPTY && txn[INLETS] == EMPTY && (owns[0] || owns[1]) ->
    assert(answered(0) && answered(1) && answered(2) && answered(3) && answered(4)) }
}

#ifndef INPUTS
/* The repeat, at any time. */
active proctype Client() {
  append(COMMITTED)
}
#endif

init {
  atomic {
    append(COMMITTED);
#ifdef INPUTS
    run Inputs(0, 1); run Inputs(1, 1);
    run Worker(0, 1); run Worker(1, 1)
#else
    run Worker(0, TERMS); run Worker(1, TERMS)
#endif
  }
}
