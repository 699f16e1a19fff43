/* Ownership and fencing: one transactional id, two workers, and a network that loses answers.
 *
 * A step fires one event: a record in the output, a row in the changelog, and the end of the
 * transaction.  The checker tries every order of these, a crash at every step, a pause of any
 * length, every lost answer, and an EndTxn that arrives as late as it likes.
 *
 *     model             code
 *     Worker, term      partitions/owner.py PartitionRunner._one_term; recovery/takeover.py TakeOver.run
 *     fence             transactions/writer.py TransactionWriter.begin (InitProducerId)
 *     fire, row         transactions/appending.py Appender.append
 *     end               transactions/writer.py TransactionWriter._end (EndTxn)
 *     Unknown, Fenced   partitions/owner.py PartitionRunner._run; kafka/transactions.py
 *     epoch, open       the broker's transaction coordinator
 *     m_fire, m_row     markers that are decided and not yet written to a partition
 *
 * Invariants: no event is visible twice; rows follow one another without gap (the watermark never
 * falls); wherever no marker is outstanding, what fired is what the changelog says; in the end all
 * has fired.
 *
 * V2 chooses the second part of KIP-890: each transaction has an epoch of its own.
 */
#ifndef EVENTS
#define EVENTS 2
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#define QUIET (m_fire == 0 && m_row == 0)
#define DONE 0
#define FENCED 1
#define INVALID 2

byte epoch, ended;             /* the id's epoch; the epoch whose end was carried out last */
bool open, committed;          /* a transaction is open; whether the last one was committed */
byte t_fire, t_row;            /* what the open transaction holds */
byte m_fire, m_row;            /* what a commit was decided of, its marker not yet written */
byte fires[EVENTS + 1];        /* how often each event is visible */
byte watermark;                /* of the last visible row */
byte assigned;                 /* the worker that the group names */
byte running = 2;
byte crashes = 1, losses = LOSSES, rollbacks = 1;
chan late = [2] of { byte, bool };  /* EndTxn that nobody waits for any more: epoch, commit */

inline consistent() {
  byte_i = 1;
  do
  :: byte_i > EVENTS -> break
  :: else -> assert(fires[byte_i] == (byte_i <= watermark -> 1 : 0)); byte_i++
  od;
  byte_i = 0
}

/* The coordinator carries out an EndTxn, or refuses it. */
inline end_transaction(e, commits, answer) {
  if
#ifdef V2
  /* Asked again: it was carried out, and its answer is given once more. */
  :: e != epoch && e + 1 == epoch && ended == e && committed == commits -> answer = DONE
  :: e != epoch && !(e + 1 == epoch && ended == e && committed == commits) -> answer = FENCED
#else
  :: e != epoch -> answer = FENCED
#endif
  :: e == epoch && open ->
     if
     :: commits -> m_fire = t_fire; m_row = t_row
     :: else
     fi;
     t_fire = 0; t_row = 0; open = false; committed = commits; ended = e; answer = DONE;
#ifdef V2
     epoch++
#endif
  :: e == epoch && !open -> answer = (ended == e && committed == commits -> DONE : INVALID)
  fi
}

/* Markers, which reach each partition in their own time, and requests that arrive late. */
active proctype Broker() {
  byte e, answer, byte_i;
  bool commits;
end:
  do
  :: d_step { m_fire > 0 ->
       fires[m_fire]++; assert(fires[m_fire] == 1); m_fire = 0;
       if :: m_row == 0 -> consistent() :: else fi }
  :: d_step { m_row > 0 ->
       assert(m_row == watermark + 1); watermark = m_row; m_row = 0;
       if :: m_fire == 0 -> consistent() :: else fi }
  :: d_step { late?e,commits -> end_transaction(e, commits, answer); e = 0; answer = 0; commits = false }
  od
}

proctype Worker(byte me) {
  byte mine, w, answer;
  bool commits;

term:                          /* nothing is remembered of an earlier term */
  mine = 0; w = 0; answer = 0; commits = false;
  if :: assigned != me -> goto stop :: else fi;
#ifdef BUG_END_BEFORE_FENCE
  w = watermark;
#endif
  /* The fence: it ends what was open, and waits until the markers of what was decided are there. */
#ifdef BUG_NO_FENCE
  atomic { if :: epoch == 0 -> epoch = 1 :: else fi; mine = epoch };
#else
  d_step { QUIET -> open = false; t_fire = 0; t_row = 0; epoch++; mine = epoch };
#endif
#ifndef BUG_END_BEFORE_FENCE
  w = watermark;
#endif

step:
  answer = INVALID;
  if
  :: w == EVENTS -> goto stop
  :: atomic { w < EVENTS && crashes > 0 -> crashes--; goto term }
  :: atomic { w < EVENTS && epoch != mine -> goto fenced }
  :: atomic { w < EVENTS && epoch == mine && QUIET -> open = true; t_fire = w + 1 }
  fi;
  if
  :: atomic { crashes > 0 -> crashes--; goto term }
  :: atomic { epoch != mine -> goto fenced }
  :: atomic { epoch == mine && !open -> goto roll_back }   /* verified: not part of a transaction */
  :: atomic { epoch == mine && open -> t_row = w + 1; commits = true }
  :: atomic { rollbacks > 0 -> rollbacks--; commits = false }   /* a topic refuses its batch */
  fi;
#ifdef BUG_STORE_BEFORE_COMMIT
  w++;
#endif

ask:
  if
  :: atomic { crashes > 0 -> crashes--; goto term }
  :: d_step { end_transaction(mine, commits, answer) }
     if :: true :: atomic { losses > 0 -> losses--; goto unanswered } fi
  :: atomic { losses > 0 && nfull(late) -> losses--; late!mine,commits; goto unanswered }
  fi;
  if
  :: answer == FENCED -> goto fenced
  :: answer == INVALID -> goto roll_back
  :: answer == DONE && commits
  :: answer == DONE && !commits -> goto roll_back
  fi;
#ifdef V2
  mine++;
#endif
#ifndef BUG_STORE_BEFORE_COMMIT
  w++;                         /* the local store comes after the commit */
#endif
  goto step;

roll_back:                     /* the same step is done again, in the next epoch */
  commits = false;
#ifdef V2
  if :: answer == DONE -> mine++ :: else fi;
  goto step;
#else
  if
  :: atomic { epoch != mine -> goto fenced }
  :: d_step { epoch == mine && QUIET -> open = false; t_fire = 0; t_row = 0; epoch++; mine = epoch }
  fi;
  goto step;
#endif

unanswered:
#ifdef V2
  if :: goto ask :: goto term fi;     /* its epoch is over once it was carried out */
#else
#ifdef BUG_V1_REPEATS_END
  goto ask;                    /* what librdkafka may do while it recovers a connection */
#else
#ifdef BUG_UNKNOWN_DONE_AGAIN
  goto step;
#else
  goto term;                   /* nobody knows: take over anew, fence first */
#endif
#endif
#endif

fenced:
  if
  :: assigned == me -> goto term
  :: assigned != me -> goto stop
  fi;
stop:
  running--
}

init {
  byte byte_i;
  atomic { assigned = 1; run Worker(1) };
  atomic { assigned = 2; run Worker(2) };     /* at any later time, while the first one runs */
  (running == 0 && QUIET && empty(late));
  d_step { consistent() };
  assert(watermark == EVENTS)
}
