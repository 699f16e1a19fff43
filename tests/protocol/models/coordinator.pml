/* The coordinators: one for each transactional id; it is the process of that number.

   EndTxn arrives, or is lost where nobody waits for it any more.  A transaction that lives longer than
   its time-out is rolled back.  Markers are written one by one, in any order. */

/* An EndTxn arrives.  A repeat of one that was carried out gets the same answer. */
inline end_txn(id, e, sender) {
  d_step {
    if
    :: e == epoch[id] && txn[id] == ONGOING ->
         txn[id] = COMMITTING; last_end[id] = e; epoch[id] = epoch[id] + (PROTOCOL == 2);
         reply[sender] = (awaits[sender] == e -> DONE : reply[sender])
    :: else ->
         if
         :: awaits[sender] != e
         :: else -> reply[sender] = (e == last_end[id] && epoch[id] == e + (PROTOCOL == 2) ->
                                     DONE : REFUSED)
         fi
    fi;
    e = 0
  }
}

#define is_ending(id) (txn[id] == COMMITTING || txn[id] == ABORTING)
#define has_marker(id, place) marked[PLACES * id + place]

inline write_marker(id, place) {
  marker(id, place, txn[id] == COMMITTING);
  marked[PLACES * id + place] = true;
  if
  :: has_marker(id, OUTPUTS) && has_marker(id, RECORDS) && has_marker(id, PLACES - 1) ->
       completed(id);
       marked[PLACES * id + OUTPUTS] = false; marked[PLACES * id + RECORDS] = false;
       marked[PLACES * id + PLACES - 1] = false; txn[id] = EMPTY
  :: else
  fi
}

active [IDS] proctype Coordinator() {
  byte e, sender;
end:
  do
  :: atomic { net[_pid]?e, sender -> end_txn(_pid, e, sender); sender = 0 }
  :: atomic { net[_pid]?[e, sender] -> net[_pid]?e, sender;
       if
       :: awaits[sender] != e        /* lost: nobody waits for it any more */
       :: else -> end_txn(_pid, e, sender)
       fi; e = 0; sender = 0 }
  :: atomic { txn[_pid] == ONGOING && faults > 0 ->
       faults--; epoch[_pid]++; txn[_pid] = ABORTING }
  :: atomic { timeout && txn[_pid] == ONGOING ->       /* left open: it is over some day */
       epoch[_pid]++; txn[_pid] = ABORTING }
  :: atomic { is_ending(_pid) && !has_marker(_pid, OUTPUTS) -> write_marker(_pid, OUTPUTS) }
  :: atomic { is_ending(_pid) && !has_marker(_pid, RECORDS) -> write_marker(_pid, RECORDS) }
#if PLACES > 2
  :: atomic { is_ending(_pid) && !has_marker(_pid, PLACES - 1) -> write_marker(_pid, PLACES - 1) }
#endif
  od
}
