// Reads stored persons and groups from a replica, and from the primary when the replica fails. An evaluation that
// waited for a hanging replica still has time for the primary. A replica that is known to be down is not called.

import { type MaybePromise, mapMaybePromise } from '#core/maybe-promise.ts'
import type { CookielessVisitors } from '#ports/state/cookieless-visitors.ts'
import type { HashKeyOverrideReader, SubjectStore } from '#ports/state/subject-store.ts'
import type { StoreCircuitBreaker } from './store-circuit-breaker.ts'

type Subjects = SubjectStore & HashKeyOverrideReader & CookielessVisitors

/**
 * @param guard guards the replica alone. Its timeout must leave the primary some of an evaluation's time.
 * @returns a store whose look-ups fail only when the primary's do.
 */
export function createReplicaFirstStore(replica: Subjects, primary: Subjects, guard: StoreCircuitBreaker): Subjects {
  function askReplicaFirst<T>(ask: (subjects: Subjects) => MaybePromise<T>): MaybePromise<T> {
    const found = guard.run(() => ask(replica))
    return mapMaybePromise(found, loaded => (loaded.ok ? loaded.value : ask(primary)))
  }
  return {
    findPerson: (...person) => askReplicaFirst(subjects => subjects.findPerson(...person)),
    findStaticCohorts: (...person) => askReplicaFirst(subjects => subjects.findStaticCohorts(...person)),
    findGroup: (...group) => askReplicaFirst(subjects => subjects.findGroup(...group)),
    findHashKeys: (...person) => askReplicaFirst(subjects => subjects.findHashKeys(...person)),
    countIdentifies: (...visitor) => askReplicaFirst(subjects => subjects.countIdentifies(...visitor)),
  }
}
