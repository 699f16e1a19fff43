/* Chapter 7: a belfry gets a partition while workers run.

   The command makes belfry.homes, gives belfry.changelog a partition, and then belfry.schedules.  With
   BY_HAND the last one had it before: its owner keeps no state there and sends requests on, with a position
   that is an offset of a group.  A broker hears of each change later, in the same order, and workers
   ask that one or another one, which knows all:

       keeper    knows that the changelog has the partition, and takes requests in
       sender    does not know it yet, and sends them home: app/belfry `partitions/opener.py` PartitionOpener

   The two have different transactional ids, so a fence of one says nothing to the other.  The first keeper
   fences the sender, reads how far it has come, and says beside that offset that it is over:
   `partitions/parts.py` PartitionParts.sent_on_to.

   A transaction ends at one instant here; chapters 1 to 4 are about how.  The group moves the partition as
   often as MOVES says, and workers are killed.

   What has to hold: each request is sent on or taken in, and once; at rest all of them have been; and who
   starts takes the number of homes for what it was.

   planted bug      what it does
   HOMES_LATE       gives the changelog partitions before belfry.homes is made
   BEGINS_ANEW      lets the first keeper begin where the input does
   SENDER_UNFENCED  lets the first keeper read how far the sender has come without a fence
   OVER_UNSAID      lets the first keeper say nothing beside the offset
   OVER_LATE        lets it say so behind its first step
   OVER_UNREAD      lets a sender begin whatever stands beside the offset */

#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef MOVES
#define MOVES 1
#endif
#define REQUESTS 2

/* What the command has done. */
#ifdef HOMES_LATE
#define HAS_CHANGELOG 1
#define HAS_HOMES 2
#else
#define HAS_HOMES 1
#define HAS_CHANGELOG 2
#endif
#define HAS_INPUT 3
#ifdef BY_HAND
#define dealt true
#else
#define dealt (done == HAS_INPUT)
#endif

#define KEEPER 0                /* belfry.<partition> */
#define SENDER 1                /* belfry.ingress.<partition> */

byte done;                      /* by the command, */
byte heard;                     /* and what the late broker has heard of it */
byte holds[2];                  /* who has fenced each transactional id last: one more than its number */
byte offset;                    /* of the group: where sending on is, */
bool over;                      /* and what stands beside it */
bool begun;                     /* the changelog has a manifest, */
byte position;                  /* which tells where taking in is */
byte left[REQUESTS];            /* how often a request was sent on or taken in */
byte assigned, moves = MOVES, faults = FAULTS;

active proctype Command() {
end:
  do
  :: done < HAS_INPUT -> done++
  :: heard < done -> heard++
  od
}

active proctype Group() {
end:
  do
  :: atomic { moves > 0 && dealt -> moves--; assigned = 1 - assigned }
  od
}

/* A broker's answer: of the late one, or of another one. */
inline ask() {
  if
  :: told = done
  :: told = heard
  fi;
  knows = knows || told >= HAS_CHANGELOG
}

inline leaves() {
  left[at]++;
  assert(left[at] <= 1);                                       /* sent on or taken in once */
  at++
}

#define fenced(id) (holds[id] != me + 1)
#define dies atomic { faults > 0 -> faults--; goto start }

proctype Worker(byte me) {
  byte at, told;
  bool knows;
start:
  atomic { knows = false; at = 0; ask();
    assert(!knows || told >= HAS_HOMES);                       /* it takes homes for what they are */
    told = 0 };
end_waits:
  atomic { assigned == me && dealt -> ask(); told = 0;
    if
    :: knows -> holds[KEEPER] = me + 1; at = position;
         if
         :: begun -> goto takes
         :: else
         fi
    :: else -> holds[SENDER] = me + 1; goto send
    fi };

  /* The first keeper. */
#ifndef SENDER_UNFENCED
  atomic { holds[SENDER] = me + 1; at = offset };
#else
  at = offset;
#endif
#ifdef BEGINS_ANEW
  at = 0;
#endif
#if !defined(OVER_UNSAID) && !defined(OVER_LATE)
  if
#ifdef SENDER_UNFENCED
  :: atomic { offset = at; over = true }
#else
  :: atomic { !fenced(SENDER) -> over = true }
  :: atomic { fenced(SENDER) -> at = 0; goto end_waits }
#endif
  :: dies
  fi;
#endif
takes:
end_takes:
  do
  :: atomic { at < REQUESTS && !fenced(KEEPER) -> leaves(); position = at; begun = true }
#ifdef OVER_LATE
     if
     :: over = true
     :: dies
     fi
#endif
  :: atomic { fenced(KEEPER) -> at = 0; goto end_waits }
  :: dies
  od;

send:
  if
#ifndef OVER_UNREAD
  :: atomic { over -> goto end_waits }
  :: atomic { !over -> at = offset }
#else
  :: at = offset
#endif
  :: dies
  fi;
end_sends:
  do
  :: atomic { at < REQUESTS && !fenced(SENDER) -> leaves(); offset = at; over = false }
  :: atomic { fenced(SENDER) -> at = 0; goto end_waits }
  :: atomic { done >= HAS_CHANGELOG -> knows = true; at = 0; goto end_waits }  /* it looks now and then */
  :: dies
  od
}

active proctype Rest() {
end:
  atomic { timeout && done == HAS_INPUT && heard == HAS_INPUT ->
    assert(left[0] == 1 && left[1] == 1) }                     /* and every one is */
}

init {
  atomic { run Worker(0); run Worker(1) }
}
