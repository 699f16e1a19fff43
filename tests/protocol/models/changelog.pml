/* A partition: what its owners write, and how its state is read back.

   Events 0, 1, … are due in this order, and a step fires the next one.  It writes two records in one
   transaction, a fired record into an output topic, and a row into the changelog:

       output      fired: event 0
       changelog   row, with the manifest: watermark 1, so events before 1 are over

   A state is a watermark.  Readers of committed records see the changelog up to its last stable offset,
   which is the first record of an open transaction, or the end (`kafka/changelog_reader.py`).

   With IN_TURN the transactions of an owner are of two ids, and markers of a later one may come sooner.
   A reader sees them in the order of the log nevertheless, and what has to hold is what it sees. */

#ifdef IN_TURN
#define under_way(id, event) (txn[1 - id] == COMMITTING && fired[1 - id] == event + 1)
#else
#define under_way(id, event) false
#endif

mtype = { OPEN, COMMITTED, ABORTED };

byte log_row[LOG];              /* the changelog: the watermark that a row tells; 0: a stranger's */
byte log_of[LOG];               /* the transactional id that wrote it */
mtype log_mark[LOG];
byte log_end;
byte stable;                    /* the last stable offset */

byte fired[IDS];                /* the fired record of an id's open transaction: event + 1; 0: none */
byte copies[IDS];               /* how often it was written in there */
byte row[IDS];                  /* the row of an id's last transaction */
byte visible[EVENTS];           /* how often a reader of committed records finds each event */
byte watermark;                 /* of the last manifest that was committed */

inline find_stable() {
  do
  :: stable < log_end && log_mark[stable] != OPEN ->
       if
       :: log_mark[stable] == COMMITTED && log_row[stable] > 0 ->
            assert(log_row[stable] > watermark);              /* the watermark only grows */
            watermark = log_row[stable]
       :: else
       fi;
       stable++
  :: else -> break
  od
}

inline append(id, next) {
  d_step {
    assert(log_end < LOG);      /* a bound of the model, not of the protocol */
    log_row[log_end] = next; log_of[log_end] = id; log_mark[log_end] = OPEN; log_end++;
    find_stable()
  }
}

/* The first record of a step begins the transaction (AddPartitionsToTxn in protocol 1), and waits for
   the end of the last one: TransactionWriter.write. */
inline write_fired(id, mine, event, result) {
  if
  :: atomic { epoch[id] == mine && (txn[id] == EMPTY || txn[id] == ONGOING) ->
       txn[id] = ONGOING; fired[id] = event + 1; copies[id]++; result = DONE }
  :: atomic { epoch[id] != mine -> result = REFUSED }
  :: atomic { crash(result) }
  fi
}

/* The others are taken while it is ongoing.  `behind` is the offset behind the row, where a store goes on
   that holds it. */
inline write_row(id, mine, next, behind, result) {
  if
  :: atomic { epoch[id] == mine && txn[id] == ONGOING ->
       append(id, next); row[id] = next; behind = log_end; result = DONE }
  :: atomic { epoch[id] != mine || txn[id] != ONGOING ->
       result = (epoch[id] == mine -> UNKNOWN : REFUSED) }
  :: atomic { crash(result) }
  fi
}

/* The marker of a transaction arrives in one place. */
inline marker(id, place, is_commit) {
  d_step {
    byte i = 0;
    if
    :: place == OUTPUTS ->
         if
         :: is_commit && fired[id] > 0 ->
              visible[fired[id] - 1] = visible[fired[id] - 1] + copies[id];
              assert(visible[fired[id] - 1] <= 1)             /* nothing fires twice */
         :: else
         fi;
         fired[id] = 0; copies[id] = 0
    :: place == RECORDS ->
         do
         :: i < log_end ->
              if
              :: log_mark[i] == OPEN && log_of[i] == id ->
                   log_mark[i] = (is_commit -> COMMITTED : ABORTED); log_of[i] = 0;
                   if
                   :: is_commit
                   :: else -> log_row[i] = 0
                   fi
              :: else
              fi;
              i++
         :: else -> break
         od;
         find_stable()
    fi;
    i = 0
  }
}

/* A transaction is over in all places: what its manifest calls fired has to be there. */
inline completed(id) {
  d_step {
    byte k = 0;
    do
    :: k < row[id] && txn[id] == COMMITTING ->
         if
         :: under_way(id, k)
         :: else -> assert(visible[k] >= 1)                   /* nothing is lost */
         fi;
         k++
    :: else -> break
    od;
    k = 0; row[id] = 0
  }
}

/* Replay: fold what was committed between `at` and `upto` (`store/replay.py`). */
inline fold(at, upto, seen) {
  d_step {
    do
    :: at < upto ->
         if :: log_mark[at] == COMMITTED && log_row[at] > 0 -> seen = log_row[at] :: else fi;
         at++
    :: else -> break
    od
  }
}
