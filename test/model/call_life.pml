// A call's life as the broker means it: decide, ask, record, dispatch, crash, retry, settle. Two equal calls of one
// role, two approvers, an operator, a provider, a store whose commits land later or fail, a process that dies at any
// point and comes back, an owner who changes the policy. What messages say, labels and limits are left out.
//
// The store outlives a crash, the process's tables do not. One step of the broker is one atomic sequence: it is single-threaded,
// and what can come between two of its steps is a step here. A commit is handed over, lands or fails, and is told
// later; a crash may come between any of these. A commit that fails has changed nothing (store/port.ts).
//
// From every state the world may calm down for good: nobody asks, answers or cancels any more, and nothing crashes.
// Time, the store and the operator's `settle` alone must then bring every call to rest: the witness checks it.
//
// model.test.ts runs this to the end within several bounds, wants every line reached, holds `begin`, `move` and
// `answered` against the transitions in the code, and proves on mutations that what is asserted can fail.

#ifndef ASKS
#define ASKS 2        /* of the first call */
#endif
#ifndef EQUAL_ASKS
#define EQUAL_ASKS 1  /* of the second */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef FAILURES
#define FAILURES 1
#endif
#ifndef RELOADS
#define RELOADS 1
#endif

mtype:verdict = { ALLOW, ASK, DENY }
mtype:stage = { ABSENT, ASKING, ANSWERING, RECORDING, DISPATCHED, ENDED }
mtype:cause = { by_approve, by_refuse, by_unwritten, by_dispatch, by_expired, by_void, by_withdrawn, by_end }
mtype:question = { NO_QUESTION, PENDING, APPROVED, REFUSED, EXPIRED, WITHDRAWN, VOID }
mtype:kept = { NOTHING, INTENT, OUTCOME }
mtype:commit = { NO_COMMIT, THE_QUESTION, THE_INTENT, RELEASE, REFUSAL, EXPIRY, WITHDRAWAL, VOIDING, TAKING_BACK, THE_OUTCOME, SETTLEMENT }
mtype:progress = { UNDER_WAY, LANDED, FAILED }
// ANSWER: the provider's, result or failure. Those up to SETTLED stay for replay; the others are said afresh.
mtype:message = { NO_MESSAGE, ANSWER, TIMEOUT, PROVIDER_LOST, CANCELLED, APPROVAL_REFUSED, APPROVAL_EXPIRED, SETTLED, OUTCOME_UNKNOWN, DENIED, NO_PROVIDER, UNAVAILABLE, REFUSED_BEFORE }
mtype:press = { AWAY, PRESSING, WON, LOST }

#define other(c) (1 - c)
#define asks_max(c) (c == 0 -> ASKS : EQUAL_ASKS)

// What is in the store.
mtype:question question[2] = NO_QUESTION;
bool stale[2];                            // an earlier question of the call is pending too: its end could not be written
mtype:kept kept[2] = NOTHING;
mtype:message outcome[2] = NO_MESSAGE;

// What is in the process.
mtype:stage stage[2] = ABSENT;
bool follows[2];                          // has no question of its own: it goes with the equal call
bool owes[2];                             // the end of the earlier question is to be written
bool released[2];                         // by its approval
mtype:commit commit[2] = NO_COMMIT;
mtype:progress progress[2] = UNDER_WAY;
mtype:message ending[2] = NO_MESSAGE;
bool waiting[2];                          // somebody waits for the answer

// The world.
mtype:verdict verdict = ASK;              // of the policy in force, for both
bool calm;
bool late[2];                             // the question's time is over
bool serving[2];                          // the provider has been given the call and has not answered
bool connected = true;                    // the provider
mtype:press press[2] = AWAY;              // by approver; one answer each
byte pressed[2];                          // and on which call's question
byte asks[2];
byte crashes;
byte failures;
byte reloads;

// What the properties are said with.
byte runs[2];
byte releases[2];                         // by the question's present approval
byte winners[2];
mtype:message heard[2] = NO_MESSAGE;      // of those that stay, or OUTCOME_UNKNOWN
bool doubted[2];                          // it was let through while nobody knew what became of the equal call

#define stays(m) (m == ANSWER || m == TIMEOUT || m == PROVIDER_LOST || m == CANCELLED || m == APPROVAL_REFUSED || m == APPROVAL_EXPIRED || m == SETTLED)
#define idle(c) (stage[c] == ABSENT && !follows[c])
#define unknown(c) (kept[c] == INTENT && idle(c))
#define in_doubt(c) (unknown(c) || (kept[c] == OUTCOME && (outcome[c] == TIMEOUT || outcome[c] == PROVIDER_LOST)))

// How far a call has come in the process.
inline begin(c, first) {
  assert(stage[c] == ABSENT);
  stage[c] = first
}

inline move(c, before, by, after) {
  assert(stage[c] == before);
  stage[c] = after
}

inline leave(c) {
  assert(stage[c] == ENDED);
  stage[c] = ABSENT;
  ending[c] = NO_MESSAGE;
  released[c] = false
}

// What became of a question: only a pending one is answered.
inline answered(c, how) {
  assert(question[c] == PENDING);
  question[c] = how
}

inline hand_over(c, what) {
  assert(commit[c] == NO_COMMIT);
  commit[c] = what;
  progress[c] = UNDER_WAY
}

inline told(c) {
  commit[c] = NO_COMMIT;
  progress[c] = UNDER_WAY
}

inline keep_one_intent(c) {
  assert(kept[c] == NOTHING);
  kept[c] = INTENT
}

inline keep_intent(c) {
  keep_one_intent(c);
  if :: follows[other(c)] -> keep_one_intent(other(c)) :: else -> skip fi
}

// Written once for good.
inline keep_one_outcome(c, m) {
  assert(kept[c] != OUTCOME);
  kept[c] = OUTCOME;
  outcome[c] = m
}

inline keep_outcome(c, m) {
  assert(stays(m));
  keep_one_outcome(c, m);
  if :: follows[other(c)] -> keep_one_outcome(other(c), m) :: else -> skip fi
}

// The final answer reaches whoever waits.
inline hear(c, m) {
  if
  :: waiting[c] && stays(m) ->
    assert(kept[c] == OUTCOME && outcome[c] == m);
    assert(heard[c] == NO_MESSAGE || heard[c] == m || (heard[c] == OUTCOME_UNKNOWN && m == SETTLED));
    assert(m != ANSWER || runs[0] + runs[1] > 0);
    assert(m != APPROVAL_REFUSED || question[0] == REFUSED || question[1] == REFUSED);
    assert(m != APPROVAL_EXPIRED || runs[c] == 0);
    heard[c] = m
  :: waiting[c] && m == OUTCOME_UNKNOWN ->
    assert(kept[c] == INTENT);
    assert(heard[c] == NO_MESSAGE || heard[c] == OUTCOME_UNKNOWN);
    heard[c] = OUTCOME_UNKNOWN
  :: waiting[c] && (m == UNAVAILABLE || m == NO_PROVIDER || m == REFUSED_BEFORE) ->
    assert(runs[c] == 0)                  // these say that nothing ran
  :: else -> skip
  fi;
  waiting[c] = false
}

// The call is over for the process: who goes with it hears the same.
inline over(c, m) {
  hear(c, m);
  if
  :: follows[other(c)] -> follows[other(c)] = false; hear(other(c), m)
  :: else -> skip
  fi;
  leave(c)
}


// The intent is written: the decision is taken once more, and the provider is given the call.
#define may_run(c) (verdict == ALLOW || (verdict == ASK && released[c]))

inline dispatch(c) {
  if
  :: may_run(c) && connected ->
    if
    :: stage[c] == RECORDING -> move(c, RECORDING, by_dispatch, DISPATCHED)
    :: else -> move(c, ANSWERING, by_dispatch, DISPATCHED)
    fi;
    runs[c]++;
    serving[c] = true;
    assert(runs[c] == 1);                 // never twice
    assert(kept[c] == INTENT);            // nor without a durable intent
    assert(verdict != DENY);
    assert(releases[c] == 1 || (verdict == ALLOW && !doubted[c]));
    assert(heard[c] == NO_MESSAGE)        // what has an answer does not run
  :: else ->
    if
    :: stage[c] == RECORDING -> move(c, RECORDING, by_end, ENDED)
    :: else -> move(c, ANSWERING, by_end, ENDED)
    fi;
    ending[c] = (may_run(c) -> NO_PROVIDER : DENIED);
    hand_over(c, TAKING_BACK)
  fi
}

// The approver hears that it has won no sooner than that is written.
inline answer_approver(c, how, became) {
  assert(question[c] == became);
  if
  :: press[0] == PRESSING && pressed[0] == c -> press[0] = how; pressed[0] = 0
  :: press[1] == PRESSING && pressed[1] == c -> press[1] = how; pressed[1] = 0
  :: else -> skip
  fi;
  if
  :: how == WON -> winners[c]++; assert(winners[c] == 1)
  :: else -> skip
  fi
}

// A caller asks, goes away, asks again with the same id, cancels.
proctype caller(byte c) {
  mtype:message m = NO_MESSAGE;
end:
  do
  :: atomic { !calm && !waiting[c] && asks[c] < asks_max(c) ->
      asks[c]++;
      waiting[c] = true;
      if
      :: !idle(c) -> skip                 // joins
      :: idle(c) && kept[c] == OUTCOME && verdict == DENY -> m = DENIED
      :: idle(c) && kept[c] == OUTCOME && verdict != DENY -> m = outcome[c]
      :: idle(c) && kept[c] == INTENT -> m = OUTCOME_UNKNOWN
      :: idle(c) && kept[c] == NOTHING && verdict == DENY -> m = DENIED
      :: idle(c) && kept[c] == NOTHING && verdict == ALLOW && !in_doubt(other(c)) ->
        begin(c, RECORDING);
        releases[c] = 0;
        doubted[c] = in_doubt(other(c));
        hand_over(c, THE_INTENT)
      :: else ->
        if
        :: question[other(c)] == REFUSED -> m = REFUSED_BEFORE
        :: stage[other(c)] == ASKING -> follows[c] = true
        :: stage[other(c)] == ANSWERING -> m = UNAVAILABLE
        :: else -> begin(c, ASKING); hand_over(c, THE_QUESTION)
        fi
      fi;
      if
      :: m != NO_MESSAGE -> hear(c, m); m = NO_MESSAGE
      :: else -> skip
      fi }
  :: atomic { !calm && waiting[c] -> waiting[c] = false }
  :: atomic { !calm && stage[c] == ASKING ->
      move(c, ASKING, by_withdrawn, ENDED);
      ending[c] = CANCELLED;
      if :: commit[c] == NO_COMMIT -> hand_over(c, WITHDRAWAL) :: else -> skip fi }
  :: atomic { !calm && stage[c] == ANSWERING -> move(c, ANSWERING, by_end, ENDED); ending[c] = CANCELLED }
  :: atomic { !calm && stage[c] == RECORDING -> move(c, RECORDING, by_end, ENDED); ending[c] = CANCELLED }
  :: atomic { !calm && stage[c] == DISPATCHED ->
      move(c, DISPATCHED, by_end, ENDED);
      ending[c] = CANCELLED;
      hand_over(c, THE_OUTCOME) }
  od
}

// Two humans with the same questions in view. The second answers second: which of them is first makes no difference.
#define may_press(a) (!calm && press[a] == AWAY && (a == 0 || press[0] != AWAY))
#define in_time(c) (stage[c] == ASKING && question[c] == PENDING && commit[c] == NO_COMMIT && !late[c])

inline press_on(a, c) {
  assert(!late[c]);
  press[a] = PRESSING;
  pressed[a] = c
}

proctype approver(byte a; byte c) {
end:
  do
  :: atomic { may_press(a) && question[c] != NO_QUESTION && !in_time(c) -> press[a] = LOST }    // hears who was first, or that it is too late
  :: atomic { may_press(a) && in_time(c) ->
      press_on(a, c);
      move(c, ASKING, by_refuse, ANSWERING);
      hand_over(c, REFUSAL) }
  :: atomic { may_press(a) && in_time(c) && verdict == DENY ->
      press[a] = LOST;
      move(c, ASKING, by_void, ENDED);
      ending[c] = DENIED;
      hand_over(c, VOIDING) }
  :: atomic { may_press(a) && in_time(c) && verdict != DENY && !connected -> press[a] = LOST }  // no_provider; it stays open
  :: atomic { may_press(a) && in_time(c) && verdict != DENY && connected ->
      press_on(a, c);
      move(c, ASKING, by_approve, ANSWERING);
      hand_over(c, RELEASE) }
  od
}

#define landed(c, what) (progress[c] == LANDED && commit[c] == what)
#define failed(c, what) (progress[c] == FAILED && commit[c] == what)

// What the broker does when a question's time is over, and when a commit calls back. `m`: the call is over with that.
proctype broker(byte c) {
  mtype:message m = NO_MESSAGE;
end:
  do
  :: atomic {
      if
      :: late[c] && stage[c] == ASKING && question[c] == PENDING && commit[c] == NO_COMMIT ->
        move(c, ASKING, by_expired, ENDED);
        ending[c] = APPROVAL_EXPIRED;
        hand_over(c, EXPIRY)
      :: late[c] && stage[c] == ANSWERING && ending[c] == NO_MESSAGE ->   // the answer is not written in time: it runs nothing
        move(c, ANSWERING, by_end, ENDED);
        ending[c] = APPROVAL_EXPIRED
      :: landed(c, THE_QUESTION) ->
        told(c);
        if
        :: stage[c] == ENDED -> hand_over(c, WITHDRAWAL)    // cancelled meanwhile
        :: else -> skip
        fi
      :: landed(c, THE_INTENT) || landed(c, RELEASE) ->
        if
        :: commit[c] == RELEASE -> answer_approver(c, WON, APPROVED); released[c] = true
        :: else -> skip
        fi;
        told(c);
        if
        :: stage[c] == ENDED -> hand_over(c, THE_OUTCOME)   // cancelled meanwhile
        :: else -> dispatch(c)
        fi
      :: landed(c, REFUSAL) ->
        told(c);
        answer_approver(c, WON, REFUSED);
        if
        :: stage[c] == ENDED -> skip
        :: else -> move(c, ANSWERING, by_end, ENDED)
        fi;
        m = APPROVAL_REFUSED
      :: landed(c, EXPIRY) || landed(c, WITHDRAWAL) || landed(c, VOIDING) || landed(c, THE_OUTCOME) || landed(c, TAKING_BACK) ->
        told(c);
        m = ending[c]
      :: landed(c, SETTLEMENT) || failed(c, SETTLEMENT) -> told(c)
      :: failed(c, THE_QUESTION) || failed(c, THE_INTENT) ->
        told(c);
        if
        :: stage[c] == ENDED -> skip
        :: stage[c] == ASKING -> move(c, ASKING, by_end, ENDED)
        :: stage[c] == RECORDING -> move(c, RECORDING, by_end, ENDED)
        fi;
        m = UNAVAILABLE
      :: failed(c, RELEASE) || failed(c, REFUSAL) ->
        told(c);
        answer_approver(c, LOST, PENDING);
        if
        :: stage[c] == ENDED && ending[c] == APPROVAL_EXPIRED -> hand_over(c, EXPIRY)
        :: stage[c] == ENDED && ending[c] == CANCELLED -> hand_over(c, WITHDRAWAL)
        :: else -> move(c, ANSWERING, by_unwritten, ASKING)
        fi
      :: failed(c, EXPIRY) || failed(c, WITHDRAWAL) || failed(c, VOIDING) ->
        told(c);
        question[c] = NO_QUESTION;
        stale[c] = true;                                    // in the store it is pending still
        owes[c] = true;
        m = UNAVAILABLE
      :: failed(c, THE_OUTCOME) || failed(c, TAKING_BACK) -> told(c); m = OUTCOME_UNKNOWN
      :: owes[c] -> owes[c] = false; stale[c] = false
      fi;
      if
      :: m != NO_MESSAGE -> over(c, m); m = NO_MESSAGE
      :: else -> skip
      fi }
  od
}

// All of a commit or nothing.
proctype store(byte c) {
end:
  do
  :: atomic { commit[c] != NO_COMMIT && progress[c] == UNDER_WAY ->
      if
      :: commit[c] == THE_QUESTION ->
        assert(question[c] != PENDING && kept[c] == NOTHING);
        question[c] = PENDING;
        late[c] = false;
        releases[c] = 0;
        winners[c] = 0
      :: commit[c] == THE_INTENT -> keep_intent(c)
      :: commit[c] == RELEASE -> answered(c, APPROVED); releases[c]++; keep_intent(c)
      :: commit[c] == REFUSAL -> answered(c, REFUSED); keep_outcome(c, APPROVAL_REFUSED)
      :: commit[c] == EXPIRY -> answered(c, EXPIRED); keep_outcome(c, APPROVAL_EXPIRED)
      :: commit[c] == WITHDRAWAL -> answered(c, WITHDRAWN); keep_outcome(c, CANCELLED)
      :: commit[c] == VOIDING -> answered(c, VOID)
      :: commit[c] == TAKING_BACK ->
        kept[c] = NOTHING;
        if :: follows[other(c)] -> kept[other(c)] = NOTHING :: else -> skip fi
      :: commit[c] == THE_OUTCOME -> keep_outcome(c, ending[c])
      :: commit[c] == SETTLEMENT -> keep_one_outcome(c, SETTLED)
      fi;
      progress[c] = LANDED }
  :: atomic { commit[c] != NO_COMMIT && progress[c] == UNDER_WAY && failures < FAILURES -> failures++; progress[c] = FAILED }
  od
}

// It answers, answers too late, is too slow.
proctype provider(byte c) {
end:
  do
  :: atomic { serving[c] && stage[c] == DISPATCHED ->
      serving[c] = false;
      move(c, DISPATCHED, by_end, ENDED);
      ending[c] = ANSWER;
      hand_over(c, THE_OUTCOME) }
  :: atomic { serving[c] && stage[c] != DISPATCHED -> serving[c] = false }   // belongs to nothing that is open
  :: atomic { stage[c] == DISPATCHED ->
      move(c, DISPATCHED, by_end, ENDED);
      ending[c] = TIMEOUT;
      hand_over(c, THE_OUTCOME) }
  od
}

// What nobody knows, an operator may settle; it runs nothing.
proctype operator(byte c) {
end:
  do
  :: atomic { unknown(c) && commit[c] == NO_COMMIT -> hand_over(c, SETTLEMENT) }
  od
}

inline forget(c) {
  stage[c] = ABSENT;
  follows[c] = false;
  owes[c] = false;
  released[c] = false;
  commit[c] = NO_COMMIT;
  progress[c] = UNDER_WAY;
  ending[c] = NO_MESSAGE;
  waiting[c] = false;
  serving[c] = false
}

inline forget_press(a) {
  pressed[a] = 0;
  if :: press[a] == PRESSING -> press[a] = LOST :: else -> skip fi
}

// Of a call's pending questions one is open again, and only where the call has no record yet.
inline recover(c) {
  if
  :: stale[c] && question[c] != PENDING && kept[c] == NOTHING ->
    question[c] = PENDING;
    releases[c] = 0;
    winners[c] = 0
  :: else -> skip
  fi;
  stale[c] = false;
  if
  :: question[c] == PENDING -> begin(c, ASKING)
  :: else -> skip
  fi
}

inline lose(c) {
  serving[c] = false;
  if
  :: stage[c] == DISPATCHED ->
    move(c, DISPATCHED, by_end, ENDED);
    ending[c] = PROVIDER_LOST;
    hand_over(c, THE_OUTCOME)
  :: else -> skip
  fi
}

// Crash and restart, reloads, time, the provider's connection, and the calm.
proctype world() {
end:
  do
  :: atomic { !calm && crashes < CRASHES ->
      crashes++;
      forget(0);
      forget(1);
      forget_press(0);
      forget_press(1);
      recover(0);
      recover(1) }
  :: atomic { !calm && reloads < RELOADS && verdict != DENY -> reloads++; verdict = DENY }
  :: atomic { !calm && reloads < RELOADS && verdict != ALLOW -> reloads++; verdict = ALLOW }
  :: atomic { !calm && reloads < RELOADS && verdict != ASK -> reloads++; verdict = ASK }
  :: atomic { question[0] == PENDING && !late[0] -> late[0] = true }
  :: atomic { question[1] == PENDING && !late[1] -> late[1] = true }
  :: atomic { !calm && connected -> connected = false; lose(0); lose(1) }
  :: atomic { !calm && !connected -> connected = true }
  :: atomic { !calm -> calm = true }
  od
}

#define at_rest(c) (idle(c) && commit[c] == NO_COMMIT && !waiting[c] && question[c] != PENDING && !stale[c] && kept[c] != INTENT)

proctype witness() {
  timeout -> assert(at_rest(0) && at_rest(1))
}

init {
  atomic {
    if :: verdict = ASK :: verdict = ALLOW fi;
    run caller(0); run caller(1);
    run approver(0, 0); run approver(0, 1); run approver(1, 0); run approver(1, 1);
    run broker(0); run broker(1);
    run store(0); run store(1);
    run provider(0); run provider(1);
    run operator(0); run operator(1);
    run world(); run witness()
  }
}
