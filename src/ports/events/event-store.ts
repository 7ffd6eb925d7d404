// The store of processed events: all of its ports, which one adapter implements. Callers depend on the single ports. An
// event's identity is (project, UTC day of its time, name, distinct id, uuid). Every query that returns or counts events
// sees each identity once, as soon as it is inserted, regardless of the lane, job or retry by which it came; a live row
// wins over an imported row.

import type { EventHistory } from './event-history.ts'
import type { EventExports, EventQueries } from './event-queries.ts'
import type { ChargedUsage, EventStoreUpkeep, PersonEraser, SubjectMirror } from './event-store-upkeep.ts'
import type { EventWriter } from './event-writer.ts'
import type { ImportedRows } from './imported-rows.ts'
import type { FlagUsageUpkeep, InsightQueries } from './insight-queries.ts'
import type { RecordingStore } from './recording-store.ts'
import type { RejectStore } from './reject-store.ts'
import type { SqlQueries } from './sql-queries.ts'

export interface EventStore
  extends EventWriter,
    EventStoreUpkeep,
    EventQueries,
    ImportedRows,
    EventHistory,
    InsightQueries,
    EventExports,
    RejectStore,
    RecordingStore,
    SubjectMirror,
    PersonEraser,
    FlagUsageUpkeep,
    SqlQueries,
    ChargedUsage {
  close(): Promise<void>
}
