// The dependencies of the private API; `compose/front/management.ts` provides them.

import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventExports, EventQueries } from '#ports/events/event-queries.ts'
import type { ImportedRows } from '#ports/events/imported-rows.ts'
import type { InsightQueries } from '#ports/events/insight-queries.ts'
import type { RecordingStore } from '#ports/events/recording-store.ts'
import type { RejectStore } from '#ports/events/reject-store.ts'
import type { SqlQueries } from '#ports/events/sql-queries.ts'
import type { EventLogReader } from '#ports/log/event-log.ts'
import type { OpenParquetFile } from '#ports/parquet-files.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import type { RejectReplay } from '#services/capture/replay-rejects.ts'
import type { ExportSlots } from '#services/exports/export-slots.ts'
import type { DecideService } from '#services/flags/decide.ts'
import type { LiveEvents } from '#services/live/live-events.ts'
import type { RandomBytes } from '#services/manage/generate-key.ts'
import type { Passwords } from '#services/manage/passwords.ts'
import type { PayloadCipher } from '#services/manage/payload-cipher.ts'
import type { SignInAttempts } from '#services/manage/sign-in-attempts.ts'
import type { SubjectScans } from '#services/scans/subject-scans.ts'
import type { Logger } from '#telemetry/log.ts'
import type { TrustedProxies } from '#wire/address/trusted-proxies.ts'
import type { LogStateOutage } from '../../shared/state-outage.ts'
import type { CallerChecks } from './authenticate.ts'
import type { GetBaseUrl } from './base-url.ts'

/** The checks are the same instances as in `createAuthorizer`, so that what ends here ends at once. */
export interface ManagementDeps extends CallerChecks {
  readonly management: ManagementStore
  readonly rejects: RejectReplay
  readonly events: EventQueries &
    EventExports &
    Pick<ImportedRows, 'countImportedRows' | 'findImportedRows' | 'listImportedCounts'> &
    InsightQueries &
    SqlQueries &
    Pick<RejectStore, 'listRejected'> &
    RecordingStore
  readonly log: Pick<EventLogReader, 'listStreams' | 'readStreamStatus' | 'listLosses'>
  /** Resolves when this front serves everything up to the revision; a write of a definition is answered only then. */
  readonly definitionsReady: (revision: number) => Promise<void>
  readonly passwords: Passwords
  readonly attempts: SignInAttempts
  /** The proxies that tell whose request it is, for limits of attempts to sign in. */
  readonly trustedProxies: TrustedProxies
  readonly addressBase: GetBaseUrl
  /** The host that SDKs are given. */
  readonly sdkBase: GetBaseUrl
  /** The version of Pennon. */
  readonly version: string
  /** The project as this front serves it; null when the front knows no such project. */
  readonly servedProject: (projectId: number) => CompiledProject | null
  readonly decide: Pick<DecideService, 'traceEvaluation'>
  readonly exportPlaces: ExportSlots
  readonly scans: SubjectScans
  readonly openParquetFile: OpenParquetFile
  readonly liveEvents: Pick<LiveEvents, 'enter'>
  readonly payloadCipher: PayloadCipher
  readonly clock: Clock
  /** When this process started, epoch ms. */
  readonly startedAtMs: number
  /** Whether the worker processes events, rather than starting, waiting, or restoring the event store. */
  readonly isProcessing: () => boolean
  readonly monotonicNowMs: () => number
  readonly newUuid: () => string
  readonly randomBytes: RandomBytes
  readonly noteStateAway: LogStateOutage
  readonly logger: Logger
}
