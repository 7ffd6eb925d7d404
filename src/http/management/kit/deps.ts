// What the private API is made of; `compose/front.ts` fills it in.

import type { LogLane } from '#core/events/captured-event.ts'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogReader } from '#ports/event-log.ts'
import type { EventStore } from '#ports/event-store.ts'
import type { ManagementStore } from '#ports/management-store.ts'
import type { RejectReplay } from '#services/capture/replay-rejects.ts'
import type { DecideService } from '#services/flags/decide.ts'
import type { LiveEvents } from '#services/live/live-events.ts'
import type { RandomBytes } from '#services/manage/generate-key.ts'
import type { PayloadCipher } from '#services/manage/payload-cipher.ts'
import type { PersonalKeyCheck } from '#services/manage/personal-key-check.ts'
import type { Logger } from '#telemetry/log.ts'
import type { NoteStateAway } from '../../shared/state-away.ts'
import type { AddressBase } from './address-base.ts'

export interface ManagementDeps {
  readonly addressBase: AddressBase
  readonly management: ManagementStore
  readonly rejects: RejectReplay
  readonly events: Pick<
    EventStore,
    | 'listEvents'
    | 'findEvent'
    | 'listRejected'
    | 'listReplays'
    | 'findReplay'
    | 'listEventNames'
    | 'listPropertyNames'
    | 'countSurveyEvents'
  >
  /** As `EventLogReader.status`. */
  readonly logStatus: (lane: LogLane, offset: number) => Promise<{ endOffset: number; appendedAtMs: number | null }>
  /** As `EventLogReader.losses`. */
  readonly logLosses: EventLogReader['losses']
  /** Resolves when this front serves everything up to the revision: a definition write is answered after it. */
  readonly definitionsReady: (revision: number) => Promise<void>
  /** The one that `createAuthorizer` was given, so that a deleted key ends at once. */
  readonly keyCheck: PersonalKeyCheck
  /** What this front serves of a project; null when it knows no such project. */
  readonly servedProject: (projectId: number) => CompiledProject | null
  readonly decide: Pick<DecideService, 'traceEvaluation'>
  readonly liveEvents: Pick<LiveEvents, 'enter'>
  readonly payloadCipher: PayloadCipher
  readonly clock: Clock
  readonly newUuid: () => string
  readonly randomBytes: RandomBytes
  readonly noteStateAway: NoteStateAway
  readonly logger: Logger
}
