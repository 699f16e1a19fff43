/* Pre-emptive take-over and hand-over: the fence comes first, and the group follows.
 *
 * Two workers and the group's leader.  The group is never asked before a take-over, and its word
 * reaches each worker in its own time.  The checker tries every false alarm, every order of words
 * and fences, a move that an operator asks for, and a worker that dies and comes back.
 *
 *     model             code
 *     silent            partitions/standby.py Standby._silent; supervisor.py Owners._stand_by
 *     early             owner.py PartitionRunner.preemptive; supervisor.py Owners._run_one(assigned=False)
 *     fence             recovery/takeover.py TakeOver.run, producer.open()
 *     asks              supervisor.py Owners._may_restart, self._group.rejoin()
 *     share             balance/owners.py: of two that claim it, the higher epoch is right
 *     told              group/assignor.py: the assignment as this member has heard of it
 *
 * Invariants: only the last one to fence commits, and it begins where the last commit ended; the
 * number of fences is bounded by the alarms, moves and deaths, so two workers never fence one
 * another for ever; and when nothing more happens, one worker runs, and it is the one that the
 * group names.
 */
#define NOBODY 0
#ifndef FENCES
#define FENCES 14
#endif

byte holder, epoch;            /* who fenced last; its epoch */
byte assigned = 1;             /* what the group's leader decided */
byte told[3];                  /* what each worker has heard */
bool runs[3], early[3], alive[3], lost[3];
byte since[3];                 /* the epoch by which a worker that runs owns the partition */
byte commits;                  /* the log: so many steps are in it */
byte read[3];                  /* how many of them each worker has read */
bool asked;                    /* the leader is to share anew */
byte alarms = 2, moves = 1, deaths = 1, steps = 2;

#ifdef BUG_READS_BEFORE_FENCE
#define READ_FIRST(me) read[me] = commits
#define READ_LAST(me) skip
#else
#define READ_FIRST(me) skip
#define READ_LAST(me) read[me] = commits
#endif

inline fence(me) {
  READ_FIRST(me);
  d_step { epoch++; assert(epoch <= FENCES); holder = me; since[me] = epoch };
  READ_LAST(me);
  runs[me] = true
}

proctype Worker(byte me) {
  byte other = 3 - me;
end:
  do
  /* Assigned and not running: taken over, unless it was fenced off and is to ask first. */
  :: atomic { alive[me] && !runs[me] && told[me] == me && !lost[me] -> early[me] = false }
     fence(me)
  /* Standing by for an owner that has been silent for too long, or seems so. */
  :: atomic { alive[me] && !runs[me] && told[me] == other && alarms > 0 -> alarms--; early[me] = true }
     fence(me)
  /* A step: the broker takes it from the last one that fenced. */
  :: atomic { alive[me] && runs[me] && holder == me && steps > 0 ->
       steps--; assert(read[me] == commits); commits++; read[me] = commits }
  /* A step of one that was fenced off: it ends. */
  :: atomic { alive[me] && runs[me] && holder != me ->
       runs[me] = false; since[me] = 0;
       if
#ifdef BUG_EARLY_TAKES_OVER_AGAIN
       :: early[me] -> early[me] = true; goto again
#endif
       :: told[me] == me && !early[me] -> lost[me] = true
       :: else -> early[me] = false
       fi }
  /* Fenced off what the group gave it: it asks, once, and acts on the answer. */
#ifndef BUG_LOSER_KEEPS_SILENT
  :: atomic { alive[me] && lost[me] && !asked -> asked = true; lost[me] = false; told[me] = NOBODY }
#endif
  /* The group's word arrives; one that runs goes on, whatever it says, until it is fenced off. */
  :: atomic { alive[me] && told[me] != assigned && !asked ->
       told[me] = assigned; lost[me] = false;
       if
       :: assigned == me && runs[me] -> early[me] = false
       :: else
       fi }
  /* A death; all that the process knew is gone. */
  :: atomic { alive[me] && deaths > 0 && alive[other] ->
       deaths--; alive[me] = false; runs[me] = false; early[me] = false; lost[me] = false;
       since[me] = 0; told[me] = NOBODY; asked = true }
  :: atomic { !alive[me] && !asked -> alive[me] = true; asked = true }
#ifdef BUG_EARLY_TAKES_OVER_AGAIN
  :: false ->
again:
     fence(me)
#endif
  od
}

/* The leader shares anew: who runs with the higher epoch keeps it; nobody who is away gets it. */
active proctype Leader() {
end:
  do
  :: atomic { asked ->
       if
       :: alive[1] && runs[1] && !(alive[2] && runs[2] && since[2] > since[1]) -> assigned = 1
       :: alive[2] && runs[2] && !(alive[1] && runs[1] && since[1] > since[2]) -> assigned = 2
       :: !(alive[1] && runs[1]) && !(alive[2] && runs[2]) -> assigned = (alive[assigned] -> assigned : 3 - assigned)
       fi;
       asked = false }
  /* Shares move: another worker is to have it, and the present owner hands it over. */
  :: atomic { !asked && moves > 0 && alive[3 - assigned] -> moves--; assigned = 3 - assigned }
  od
}

init {
  atomic { alive[1] = true; alive[2] = true; run Worker(1); run Worker(2) };
  /* Nothing more can happen. */
  timeout ->
  assert(runs[assigned] && holder == assigned && !early[assigned]);
  assert(!runs[3 - assigned]);
  assert(told[assigned] == assigned && steps == 0 && commits == 2)
}
