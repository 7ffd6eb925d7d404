// All of the private API's state behind one connection. An adapter implements all of it; services and handlers depend only
// on the ports that they use (`project-store.ts`, `flag-store.ts` …). Every write is one transaction and returns what is
// stored afterwards. Writes that concern evaluation raise the instance's revision (`definition-store.ts`).

import type { AccountingStore } from './accounting-store.ts'
import type { ActivityStore } from './activity-store.ts'
import type { CohortMemberStore, CohortStore } from './cohort-store.ts'
import type { CookielessVisitorUpkeep } from './cookieless-visitors.ts'
import type { ErasureStore } from './erasure-store.ts'
import type { DefinitionLinkReader, FlagStore } from './flag-store.ts'
import type { GroupStore } from './group-store.ts'
import type { ImportJobStore, ImportWorkStore } from './import-job-store.ts'
import type { PersonRepairStore, PersonStore } from './person-store.ts'
import type { PersonalKeyStore, ProjectStore, SecretKeyStore } from './project-store.ts'
import type { ResourceStore } from './resource-store.ts'
import type { SubjectMirrorSource } from './subject-mirror-source.ts'
import type { SessionStore, SignInAttemptStore, SignInLinkStore, UserStore } from './user-store.ts'
import type {
  DeferredProjects,
  EventStoreMarks,
  LogBindingStore,
  ScheduleOwners,
  TrustedTimeStore,
} from './worker-state.ts'

/**
 * @throws PortError from every method: `timeout` when another process held the lock for too long, `unavailable`, `full`,
 * `corrupt`, or `conflict` for an id or a hash that already exists.
 */
export interface ManagementStore
  extends ProjectStore,
    PersonalKeyStore,
    SecretKeyStore,
    UserStore,
    SessionStore,
    SignInLinkStore,
    SignInAttemptStore,
    FlagStore,
    DefinitionLinkReader,
    CohortStore,
    CohortMemberStore,
    ResourceStore,
    PersonStore,
    ErasureStore,
    PersonRepairStore,
    GroupStore,
    AccountingStore,
    ActivityStore,
    EventStoreMarks,
    LogBindingStore,
    ScheduleOwners,
    TrustedTimeStore,
    CookielessVisitorUpkeep,
    DeferredProjects,
    SubjectMirrorSource,
    ImportJobStore,
    ImportWorkStore {
  close(): Promise<void>
}
