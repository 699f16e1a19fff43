/* Kafka, as far as the protocol rests on it: the coordinator of transactions.

   A transactional id has one epoch.  InitProducerId raises it, and from then on the coordinator and
   the leaders refuse every earlier one: that is the fence.  A transaction of an id goes this way:

       EMPTY ──begin──► ONGOING ──EndTxn──► COMMITTING ──a marker in each place──► EMPTY
                           └──── fence, time-out or roll-back ────► ABORTING ──────┘

   EndTxn travels: it may arrive when its sender has given up waiting, or never.  Markers are written
   one by one, so a transaction is visible in one place sooner than in another one.

   A write is taken where its id has a transaction ongoing in its epoch (brokers verify that since
   Kafka 3.6, KIP-890).  One that comes between the fence and the marker is rolled back in Kafka and
   refused here, which readers cannot tell apart.

   PROTOCOL 1 leaves the epoch as it is when a transaction ends.  In PROTOCOL 2 each end raises it and
   gives the next epoch with its answer, so an EndTxn that comes late ends nothing.

   A model says before it includes this: IDS, the transactional ids, and SENDERS, who may wait for the
   answer to an EndTxn.  Behind it stand `inline marker(id, place, is_commit)`, which makes what an id
   wrote in one place visible or void, `inline completed(id)`, for what has to hold then, and last
   `coordinator.pml`. */

#ifndef PROTOCOL
#define PROTOCOL 2
#endif

#ifndef FIRST_EPOCH
#define FIRST_EPOCH 0           /* 1: there is an owner already */
#endif
#ifndef RACES
#define RACES 0
#endif

#ifndef PLACES
#define PLACES 2
#endif

#define OUTPUTS 0               /* the places of a transaction: where readers look, and the log */
#define RECORDS 1

mtype = { EMPTY, ONGOING, COMMITTING, ABORTING };
mtype = { NOTHING, DONE, REFUSED, UNKNOWN, CRASHED };

mtype txn[IDS] = EMPTY;
byte epoch[IDS] = FIRST_EPOCH;
byte last_end[IDS];             /* the epoch of the EndTxn that was carried out last */
bool marked[PLACES * IDS];      /* the places that have the marker of the transaction that ends */

chan net[IDS] = [3] of { byte, byte };      /* EndTxn requests under way: epoch, sender */
byte awaits[SENDERS];                       /* the epoch whose end a sender waits for; 0: none */
mtype reply[SENDERS] = NOTHING;

/* So many times in one history something goes wrong: an answer does not come in time, a transaction
   lives longer than its time-out, a topic refuses a record, a worker is killed. */
byte faults = FAULTS;
byte repeats = REPEATS;                     /* EndTxn requests that are sent once more */

/* So often an InitProducerId that waits for markers finds the owner's next transaction, and ends that. */
byte races = RACES;

/* SIGKILL comes at any step: each one has this end as well.  Between two steps it would show no other
   history than right before the second one. */
#define crash(result) faults > 0 -> faults--; result = CRASHED

/* InitProducerId: `transactions/writer.py` TransactionWriter.begin.  It ends the transaction that is
   open, and returns when that one's markers are written. */
inline init_producer_id(id, mine, result) {
  if
  :: atomic { txn[id] == ONGOING -> epoch[id]++; txn[id] = ABORTING }
  :: txn[id] != ONGOING
  fi;
  do
  :: atomic { txn[id] == ONGOING && races > 0 -> races--; epoch[id]++; txn[id] = ABORTING }
  :: atomic { txn[id] == EMPTY -> epoch[id]++; mine = epoch[id]; result = DONE; break }
  :: atomic { crash(result); break }
  od
}

/* EndTxn and what its sender hears: TransactionWriter.end.  DONE: it is committed.  REFUSED: another
   owner has the id.  UNKNOWN: nobody answered in time, and the request may still be under way. */
inline commit(id, mine, sender, result) {
  atomic { awaits[sender] = mine; reply[sender] = NOTHING; net[id]!mine, sender }
  do
#if PROTOCOL == 2 || defined(END_REPEATED)
  :: atomic { repeats > 0 && reply[sender] == NOTHING -> repeats--; net[id]!mine, sender }
#endif
  :: atomic { reply[sender] == NOTHING && faults > 0 ->
       faults--; awaits[sender] = 0; result = UNKNOWN; break }
  :: atomic { crash(result); awaits[sender] = 0; reply[sender] = NOTHING; break }
  :: atomic { reply[sender] != NOTHING ->
       result = reply[sender]; awaits[sender] = 0; reply[sender] = NOTHING;
       if :: PROTOCOL == 2 && result == DONE -> mine++ :: else fi;
       break }
  od
}

/* A roll-back that the coordinator confirms; the next epoch comes with it. */
inline roll_back(id, mine, result) {
  if
  :: atomic { epoch[id] == mine && txn[id] == ONGOING ->
       txn[id] = ABORTING; epoch[id]++; mine = epoch[id]; result = DONE }
  :: atomic { epoch[id] != mine || txn[id] != ONGOING ->
       result = (epoch[id] != mine -> REFUSED : UNKNOWN) }
  :: atomic { crash(result) }
  fi
}
