// The form every compiled filter has.

import type { SubjectReader } from './evaluation-subject.ts'
import type { PreparedOutcome } from './prepared-outcomes.ts'

/** Outcomes of the flags decided so far, by position; undefined for one that is filtered out: it counts as false. */
export type DecidedOutcomes = readonly (PreparedOutcome | undefined)[]

/** Whether a filter holds. When `reader.failure` is set afterwards, the answer means nothing. */
export type FilterTest = (reader: SubjectReader, decided: DecidedOutcomes) => boolean
