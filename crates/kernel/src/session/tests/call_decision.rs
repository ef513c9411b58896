//! Tests of rules, remembered decisions and reviews of changes.

use expect_test::expect;

use super::check;

#[test]
fn the_strictest_rule_decides() {
    check(expect![[r#"
        rules refuse=tool:shell; create; say hi > answer c1 shell
            s1 answered c1=shell{}
            c1 Denied: refused by policy
            s2 asks fake/a
            -> model s2, wake +600
        rules refuse=kind:exec,reason:no_commands_here; create; say hi > answer c1 shell
            s1 answered c1=shell{}
            c1 Denied: refused by policy: no commands here
            s2 asks fake/a
            -> model s2, wake +600
        rules allow=kind:exec ask=exec; create; say hi > answer c1 shell
            s1 answered c1=shell{}
            c1 starts at Daemon
            -> run c1, wake +600
        rules allow=kind:exec refuse=tool:shell; create; say hi > answer c1 shell
            s1 answered c1=shell{}
            c1 Denied: refused by policy
            s2 asks fake/a
            -> model s2, wake +600
        rules ask_for=tool:look; create; say hi > answer c1 look
            s1 answered c1=look{}
            -> assess c1, wake +600
    "#]]);
}

#[test]
fn a_rule_by_path_needs_an_assessment() {
    check(expect![[r#"
        let by_path = rules refuse=path:**/.env allow=path:docs/** ask=write; create; say hi
        by_path > answer c1 look
            s1 answered c1=look{}
            -> assess c1, wake +600
        by_path > answer c1 look; assess c1 path=src/.env
            s1 answered c1=look{}
            c1 Denied: refused by policy
            s2 asks fake/a
            -> model s2, wake +600
        by_path > answer c1 look; assess c1 path=src/a.rs
            s1 answered c1=look{}
            c1 starts at Daemon
            -> run c1, wake +600
        by_path > answer c1 edit; assess c1 path=docs/a.md path=docs/b.md
            s1 answered c1=edit{}
            c1 starts at Daemon
            -> run c1, wake +600
        by_path > answer c1 edit; assess c1 path=docs/a.md path=src/b.rs
            s1 answered c1=edit{}
            c1 asked
        by_path > answer c1 edit; assess c1 path=docs/a.md opaque
            s1 answered c1=edit{}
            c1 asked
        by_path > answer c1 edit; assess c1 path=docs/.env
            s1 answered c1=edit{}
            c1 Denied: refused by policy
            s2 asks fake/a
            -> model s2, wake +600
        by_path > answer c1 edit; assess c1
            s1 answered c1=edit{}
            c1 asked
    "#]]);
}

#[test]
fn a_rule_by_command_must_match_every_command_of_a_line() {
    check(expect![[r#"
        let by_command = rules allow=command:cargo_* refuse=command:*publish* ask=exec; create; say hi
        by_command > answer c1 shell; assess c1 command=cargo_test
            s1 answered c1=shell{}
            c1 starts at Daemon
            -> run c1, wake +600
        by_command > answer c1 shell; assess c1 command=cargo_test command=rm_-r_x
            s1 answered c1=shell{}
            c1 asked
        by_command > answer c1 shell; assess c1 command=cargo_test opaque
            s1 answered c1=shell{}
            c1 asked
        by_command > answer c1 shell; assess c1 command=cargo_test command=cargo_publish
            s1 answered c1=shell{}
            c1 Denied: refused by policy
            s2 asks fake/a
            -> model s2, wake +600
    "#]]);
}

#[test]
fn access_beyond_the_sandbox_needs_approval() {
    check(expect![[r#"
        let free = rules allow=kind:exec; create; say hi
        free > answer c1 shell {"permissions":{"network":true}}
            s1 answered c1=shell{"permissions":{"network":true}}
            -> assess c1, wake +600
        free > answer c1 shell {"permissions":{"network":true}}; assess c1 permit=network
            s1 answered c1=shell{"permissions":{"network":true}}
            c1 asked
        free > answer c1 shell {"permissions":{"network":true}}; assess c1
            s1 answered c1=shell{"permissions":{"network":true}}
            c1 starts at Daemon
            -> run c1, wake +600
        free > answer c1 shell {"permissions":null}
            s1 answered c1=shell{"permissions":null}
            c1 starts at Daemon
            -> run c1, wake +600
        create; say hi > answer c1 pen {"permissions":{"network":true}}
            s1 answered c1=pen{"permissions":{"network":true}}
            c1 starts at Client
        let once = rules allow=kind:exec; create; say hi; answer c1 shell {"permissions":{"network":true}}; assess c1 permit=network; allow_same c1; done c1; answer c9 edit; done c9
        once > answer c2 shell {"permissions":{"network":true}}; assess c2 permit=network
            s3 answered c2=shell{"permissions":{"network":true}}
            c2 Allow by Memory: remembered from an earlier answer
            c2 starts at Daemon
            -> run c2, wake +600
        once > answer c2 shell {"permissions":{"read":["/x"]}}; assess c2 permit=read
            s3 answered c2=shell{"permissions":{"read":["/x"]}}
            c2 asked
    "#]]);
}

#[test]
fn a_decision_applies_to_similar_calls() {
    check(expect![[r#"
        let asked = rules ask=exec; create; say hi; answer c1 shell {"p":1}; assess c1 similar=tests
        let same = rules ask=exec; create; say hi; answer c1 shell {"p":1}; assess c1; allow_same c1; done c1; answer c9 edit; done c9
        same > answer c2 shell {"p":1}; assess c2
            s3 answered c2=shell{"p":1}
            c2 Allow by Memory: remembered from an earlier answer
            c2 starts at Daemon
            -> run c2, wake +600
        same > answer c2 shell {"p":2}; assess c2
            s3 answered c2=shell{"p":2}
            c2 asked
        let similar = rules ask=exec; create; say hi; answer c1 shell {"p":1}; assess c1 similar=tests; allow_similar c1; done c1
        similar > answer c2 shell {"p":2}; assess c2 similar=tests
            s2 answered c2=shell{"p":2}
            c2 Allow by Memory: remembered from an earlier answer
            c2 starts at Daemon
            -> run c2, wake +600
        similar > answer c2 shell {"p":2}; assess c2 similar=other
            s2 answered c2=shell{"p":2}
            c2 asked
        similar > answer c2 shell {"p":2}; assess c2 similar=tests critical
            s2 answered c2=shell{"p":2}
            c2 asked
        similar > answer c2 shell {"p":2}; assess c2 similar=tests opaque
            s2 answered c2=shell{"p":2}
            c2 asked
        similar > answer c2 verify {"p":2}; assess c2 similar=tests
            s2 answered c2=verify{"p":2}
            c2 asked
        similar > answer; say more; answer c2 shell {"p":2}; assess c2 similar=tests
            s2 answered
            t1 COMPLETED
            t2 User: "more"
            t2 starts, attempt 1
            s3 asks fake/a
            s3 answered c2=shell{"p":2}
            c2 Allow by Memory: remembered from an earlier answer
            c2 starts at Daemon
            -> run c2, wake +600
        asked > deny_similar c1; answer c2 shell {"p":2}; assess c2 similar=tests
            c1 Deny by Client
            c1 Denied: approval denied
            s2 asks fake/a
            s2 answered c2=shell{"p":2}
            c2 Deny by Memory: remembered from an earlier answer
            c2 Denied: approval denied: remembered from an earlier answer
            s3 asks fake/a
            -> model s3, wake +600
        similar > answer c2 shell {"p":2}; rules refuse=tool:shell; assess c2 similar=tests
            s2 answered c2=shell{"p":2}
            c2 Denied: refused by policy
            s3 asks fake/a
            -> model s3, wake +600
    "#]]);
}

#[test]
fn a_change_can_be_reviewed_before_it_is_made() {
    check(expect![[r#"
        let auto = rules review=auto; create; say hi; answer c1 edit
        auto > wake
            (nothing)
            -> assess c1, wake +600
        auto > assess c1
            c1 in review
            -> review c1, wake +600
        auto > assess c1; review c1 approve as asked
            c1 in review
            c1 reviewed, Some(Allow): as asked
            c1 starts at Daemon
            -> run c1, wake +600
        auto > assess c1; review c1 reject it drops a test
            c1 in review
            c1 reviewed, Some(Deny): it drops a test
            c1 Denied: review: it drops a test
            s2 asks fake/a
            -> model s2, wake +600
        auto > assess c1; review c1 none no answer
            c1 in review
            c1 reviewed, None: no answer
            c1 asked
        auto > assess c1; review c1 approve fine; review c1 reject late
            c1 in review
            c1 reviewed, Some(Allow): fine
            c1 starts at Daemon
            -> run c1, wake +600
        auto > assess c1; cancel; review c1 approve late
            c1 in review
            t1 stops: cancelled
            c1 Cancelled: the turn was stopped
            t1 CANCELLED
        auto > assess c1; recover
            c1 in review
            t1 resumed
            -> review c1, wake +600
        rules review=auto ask=write; create; say hi; answer c1 edit; assess c1 > review c1 approve fine
            c1 reviewed, Some(Allow): fine
            c1 asked
        rules review=auto; create; say hi > answer c1 shell
            s1 answered c1=shell{}
            c1 starts at Daemon
            -> run c1, wake +600
        rules review=request; create; say hi > answer c1 edit; assess c1
            s1 answered c1=edit{}
            c1 asked
        rules review=request; create; say hi > answer c1 shell
            s1 answered c1=shell{}
            c1 starts at Daemon
            -> run c1, wake +600
    "#]]);
}
