//! Tests that every store of sessions must pass. See [`crate::script`] for the commands.

use crate::script::check;

#[tokio::test]
async fn appended_events_can_be_read() {
    check(
        "
        head s          => None
        read s 0        =>
        append s 0 a b  => 2
        head s          => Some(2)
        append s 2 c    => 3
        read s 0        => 1a@1 2b@1 3c@2
        read s 2        => 3c@2
        read s 3        =>
        read s 99       =>
        read s 18446744073709551615 =>
        head t          => None
        ",
    )
    .await;
}

#[tokio::test]
async fn events_of_one_batch_keep_their_own_times() {
    check(
        "
        append s 0 a@3 b@5  => 2
        read s 0            => 1a@3 2b@5
        restart
        read s 0            => 1a@3 2b@5
        ",
    )
    .await;
}

#[tokio::test]
async fn a_conflicting_append_gets_the_head() {
    check(
        "
        append s 1 x    => conflict 0
        head s          => None
        append s 0 a b  => 2
        append s 0 x    => conflict 2
        append s 1 x y  => conflict 2
        append s 3 x    => conflict 2
        append s 18446744073709551615 x => conflict 2
        read s 0        => 1a@2 2b@2
        append s 2 c    => 3
        ",
    )
    .await;
}

#[tokio::test]
async fn a_refused_batch_stores_nothing() {
    check(
        "
        append s 0 a        => 1
        append s 0 x y open => conflict 1
        open                => []
        read s 0            => 1a@1
        append s 1          => 1
        append s 1 open     => 1
        open                => [s]
        ",
    )
    .await;
}

#[tokio::test]
async fn a_lease_ends_with_its_store() {
    check(
        "
        append s 0 a    => 1
        restart
        append s 1 b    => fenced
        append s 9 b    => fenced
        read s 0        => 1a@1
        lease s
        append s 1 b    => 2
        read s 0        => 1a@1 2b@4
        ",
    )
    .await;
}

#[tokio::test]
async fn an_erased_session_does_not_exist() {
    check(
        "
        append s 0 a b open => 2
        append t 0 c    => 1
        erase s         => gone
        head s          => None
        read s 0        =>
        open            => []
        append s 2 x    => conflict 0
        erase s         => gone
        read t 0        => 1c@2
        restart
        head s          => None
        erase t         => fenced
        head t          => Some(1)
        ",
    )
    .await;
}

#[tokio::test]
async fn a_page_respects_its_limits() {
    check(
        "
        append s 0 a b c d e => 5
        read s 0 2           => 1a@1 2b@1
        read s 2 2           => 3c@1 4d@1
        read s 4 2           => 5e@1
        read s 0 0           =>
        read s 0 9 74        => 1a@1 2b@1
        read s 0 9 73        => 1a@1
        read s 0 9 111       => 1a@1 2b@1 3c@1
        read s 0 2 111       => 1a@1 2b@1
        read s 3 9 0         => 4d@1
        ",
    )
    .await;
}

#[tokio::test]
async fn appends_need_not_wait_for_each_other() {
    check(
        "
        send s 0 a
        send s 1 b c
        send t 0 x
        send s 3 d
        settle          => 1, 3, 1, 4
        read s 0        => 1a@1 2b@2 3c@2 4d@4
        send s 4 e
        send s 4 f
        send s 6 g
        send s 5 h
        send t 1 y
        settle          => 5, conflict 5, conflict 5, 6, 2
        read s 4        => 5e@5 6h@8
        ",
    )
    .await;
}

#[tokio::test]
async fn queued_appends_are_written_before_the_store_is_dropped() {
    check(
        "
        send s 0 a
        send s 1 b
        send t 0 x
        restart
        read s 0        => 1a@1 2b@2
        settle          => 1, 2, 1
        ",
    )
    .await;
}

#[tokio::test]
async fn the_list_is_newest_first() {
    check(
        "
        list 9          =>
        clock 100
        append b 0 x    => 1
        append c 0 x    => 1
        clock 50
        append a 0 x    => 1
        list 9          => c b a
        append a 1 y    => 2
        list 2          => c b
        list 0          =>
        clock 101
        append d 0 x    => 1
        list 9          => d c b a
        restart
        list 9          => d c b a
        list 18446744073709551615 => d c b a
        ",
    )
    .await;
}

#[tokio::test]
async fn open_sessions_are_found_after_a_restart() {
    check(
        "
        append a 0 x open => 1
        append b 0 x      => 1
        append c 0 x open => 1
        open              => [a, c]
        append a 1 y      => 2
        append b 1 y open => 2
        restart
        open              => [b, c]
        ",
    )
    .await;
}

#[tokio::test]
async fn a_fork_reads_shared_events_and_then_its_own() {
    check(
        "
        append s 0 a b c      => 3
        fork t s 2 x          => 3
        read t 0              => 1a@1 2b@1 3x@2
        read t 1              => 2b@1 3x@2
        read t 2              => 3x@2
        read t 3              =>
        read t 0 2            => 1a@1 2b@1
        read t 1 2            => 2b@1 3x@2
        read t 0 9 74         => 1a@1 2b@1
        read t 0 9 73         => 1a@1
        head t                => Some(3)
        append t 3 y          => 4
        append s 3 d          => 4
        read t 0              => 1a@1 2b@1 3x@2 4y@3
        read s 0              => 1a@1 2b@1 3c@1 4d@4
        forks s               => t
        forks t               =>
        restart
        read t 0              => 1a@1 2b@1 3x@2 4y@3
        ",
    )
    .await;
}

#[tokio::test]
async fn a_fork_of_a_fork_reads_through_both() {
    check(
        "
        append s 0 a b        => 2
        fork t s 1 x          => 2
        append t 2 y          => 3
        fork u t 2 z          => 3
        fork v t 1 w          => 2
        fork w u 3 q          => 4
        read u 0              => 1a@1 2x@2 3z@4
        read v 0              => 1a@1 2w@5
        read w 0              => 1a@1 2x@2 3z@4 4q@6
        read w 1 2            => 2x@2 3z@4
        forks s               => t v
        forks t               => u
        forks u               => w
        ",
    )
    .await;
}

#[tokio::test]
async fn a_fork_needs_an_existing_event_and_a_new_id() {
    check(
        "
        append s 0 a b        => 2
        fork t s 3 x          => Missing(\"event 3 of s\")
        fork t s 0 x          => Missing(\"event 0 of s\")
        fork t n 1 x          => Missing(\"event 1 of n\")
        head t                => None
        fork s s 1 x          => conflict 2
        fork t s 2 x          => 3
        fork t s 2 x          => conflict 3
        read t 0              => 1a@1 2b@1 3x@6
        ",
    )
    .await;
}

#[tokio::test]
async fn a_fork_outlives_its_parent() {
    check(
        "
        append s 0 a b c      => 3
        fork t s 2 x          => 3
        fork u t 3 y          => 4
        erase s               => gone
        head s                => None
        read s 0              =>
        read t 0              => 1a@1 2b@1 3x@2
        erase t               => gone
        read u 0              => 1a@1 2b@1 3x@2 4y@3
        append n 0 z          => 1
        read n 0              => 1z@4
        restart
        read u 0              => 1a@1 2b@1 3x@2 4y@3
        erase u               => fenced
        lease u
        erase u               => gone
        append s 0 q          => fenced
        lease s
        append s 0 q          => 1
        read s 0              => 1q@6
        ",
    )
    .await;
}

#[tokio::test]
async fn the_most_recently_used_session_comes_first() {
    check(
        "
        append a 0 x          => 1
        append b 0 x          => 1
        recent 9              => b a
        append a 1 y          => 2
        recent 9              => a b
        recent 1              => a
        fork c b 1 x          => 2
        recent 9              => c a b
        recent 9 /tmp/elsewhere =>
        card b                => b 1@2
        card n                =>
        ",
    )
    .await;
}

#[tokio::test]
async fn the_first_session_keeps_an_alias() {
    check(
        "
        alias desk j        => None
        name desk j a       => a
        name desk j b       => a
        name desk j b c     => a
        alias desk j        => Some(a)
        alias other j       => None
        name other j b      => b
        restart
        alias desk j        => Some(a)
        name desk j b a     => b
        name desk j c a     => b
        alias desk j        => Some(b)
        ",
    )
    .await;
}

#[tokio::test]
async fn a_blob_is_deleted_with_its_last_session() {
    check(
        "
        put a
        put b
        put c
        append s 0 #a #b      => 2
        append t 0 #b         => 1
        append u 0 x          => 1
        erase s               => gone
        blob a                => a
        restart
        blob a                => gone
        blob b                => b
        blob c                => gone
        lease t
        erase t               => gone
        lease u
        append u 1 #b         => 2
        restart
        blob b                => b
        lease u
        erase u               => gone
        put b
        restart
        blob b                => gone
        ",
    )
    .await;
}

#[tokio::test]
async fn a_blob_stays_as_long_as_a_fork_refers_to_it() {
    check(
        "
        put a
        put b
        put c
        append s 0 #a #b #c   => 3
        fork t s 2 x          => 3
        fork u t 1 y          => 2
        erase s               => gone
        restart
        blob a                => a
        blob b                => b
        blob c                => gone
        lease t
        erase t               => gone
        restart
        blob a                => a
        blob b                => gone
        read u 1              => 2y@3
        lease u
        erase u               => gone
        restart
        blob a                => gone
        ",
    )
    .await;
}

#[tokio::test]
async fn appended_text_changes_only_the_head() {
    check(
        "
        append s 0 a open     => 1
        append t 0 b          => 1
        append s 1 ~x ~y      => 3
        card s                => s 3@3
        recent 9              => t s
        open                  => [s]
        append s 3 ~z c       => 5
        card s                => s 5@4
        recent 9              => s t
        open                  => []
        restart
        card s                => s 5@4
        read s 1              => 2x@3 3y@3 4z@4 5c@4
        ",
    )
    .await;
}

#[tokio::test]
async fn a_summary_is_replaced_only_at_the_same_head() {
    check(
        "
        append s 0 a b        => 2
        update s 1 open       => conflict 2
        open                  => []
        update s 2 open       => done
        open                  => [s]
        read s 0              => 1a@1 2b@1
        restart
        update s 2            => fenced
        open                  => [s]
        erase s               => fenced
        lease s
        erase s               => gone
        update s 2            => conflict 0
        ",
    )
    .await;
}

#[tokio::test]
async fn aliases_are_deleted_with_their_session() {
    check(
        "
        append a 0 x          => 1
        append b 0 x          => 1
        name desk j a         => a
        name desk k b         => b
        erase a               => gone
        alias desk j          => None
        alias desk k          => Some(b)
        name desk j b         => b
        ",
    )
    .await;
}

#[tokio::test]
async fn the_latest_usable_snapshot_is_returned() {
    check(
        "
        snapshot s            =>
        append s 0 a b c      => 3
        keep s 4 x            =>
        snapshot s            =>
        keep s 2 x            =>
        snapshot s            => 2x/f
        fork t s 2 d          => 3
        fork u s 1 e          => 2
        snapshot t            => 2x/f
        snapshot u            =>
        keep t 3 y            =>
        snapshot t            => 3y/f
        fork v t 3 g          => 4
        snapshot v            => 3y/f
        restart
        snapshot t            => 3y/f
        keep s 3 z            => fenced
        lease s
        keep s 3 z            =>
        snapshot s            => 3z/f
        erase s               => gone
        snapshot s            =>
        snapshot t            => 3y/f
        lease t
        erase t               => gone
        snapshot v            =>
        read v 0              => 1a@1 2b@1 3d@2 4g@4
        ",
    )
    .await;
}
