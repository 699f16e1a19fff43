/* Chapter 5: what an owner reads within its lease is the truth, even if it has been fenced already.

   An owner answers reads from its store for LEASE after it sent a commit that Kafka acknowledged, if the
   manifest of that commit says so.  A successor that finds such a manifest changes nothing before
   OUTWAIT has passed since it was appended.  One that is fenced meanwhile has carried the wait on.

       A    manifest, lease ├──── answers reads ────┤
       B         fence, first manifest, "lease" ├─── waits ── fenced
       C                   fence, first manifest ├────────── waits, from B's manifest ──────────┤ changes

   Time passes whenever nothing forbids it, so an owner may sleep anywhere.  The fence of chapter 1 is one
   step here.  What has to hold: a read within a lease shows what is committed.

   planted bug           what it does
   NO_OUTWAIT            changes the state at once, whatever the last manifest says
   SHORT_OUTWAIT         waits for less than a lease
   WAIT_NOT_CARRIED      says in its first manifest that there is no lease
   READS_UNSETTLED       answers reads while a commit is on its way */

#define LEASE 2
#ifdef SHORT_OUTWAIT
#define OUTWAIT 1
#else
#define OUTWAIT 3               /* `partitions/leasing.py` OUTWAIT_MS: longer than the lease */
#endif
#define END_OF_TIME 6
#ifndef COMMITS
#define COMMITS 2               /* of all owners, behind their first manifests */
#endif

byte now;
byte left = COMMITS;
byte epoch;
byte state;                     /* what is committed */
bool lent;                      /* the last manifest says that a lease may run, */
byte appended;                  /* and was appended then */

/* `partitions/leasing.py` Leasing, and `engine/read_lease.py` ReadLease.  Owners are numbered in the order
   in which they fence one another. */
proctype Owner(byte mine) {
  byte seen, sent, proven, length, next, lent_at;
  bool waits;
  atomic { epoch == mine - 1 -> epoch = mine; seen = state; waits = lent; lent_at = appended };
  if
  :: atomic { epoch == mine ->                          /* the first manifest */
#ifdef WAIT_NOT_CARRIED
       lent = false;
#else
       lent = waits;
#endif
       appended = now }
  :: epoch != mine -> goto fenced
  fi;
#ifndef NO_OUTWAIT
end_waits:
  if
  :: atomic { !waits || now >= lent_at + OUTWAIT -> waits = false; lent_at = 0 }
  :: epoch != mine -> goto fenced
  fi;
#endif
end_owner:
  do
  :: atomic { length > 0 && now < proven + length -> assert(seen == state) }       /* a read */
  :: atomic { length > 0 && now >= proven + length -> length = 0; proven = 0 }     /* it has run out */
  :: atomic { left > 0 -> left--; sent = now;           /* ReadLease.begin and sent; then ends */
       if :: next = LEASE :: next = 0 fi };
     if
     :: atomic { epoch == mine -> state++; lent = (next > 0); appended = now }
     :: epoch != mine -> goto fenced
     fi;
#ifdef READS_UNSETTLED
     if
     :: atomic { length > 0 && now < proven + length -> assert(seen == state) }
     :: true
     fi;
#endif
     atomic { seen++; proven = sent; length = next; sent = 0; next = 0 }           /* committed */
  od;
fenced:
  skip
}

active proctype Clock() {
  do
  :: now < END_OF_TIME -> now++
  :: else -> break
  od
}

init { atomic { run Owner(1); run Owner(2); run Owner(3) } }
