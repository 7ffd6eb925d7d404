// The type of a compiled filter.

import type { SubjectReader } from './evaluation-subject.ts'
import type { PreparedOutcome } from './prepared-outcomes.ts'

/** Outcomes of the flags decided so far, by position; undefined for a flag that is filtered out, which counts as false. */
export type DecidedOutcomes = readonly (PreparedOutcome | undefined)[]

/** Whether a filter holds. The answer means nothing if `reader.failure` is set afterwards. */
export type FilterTest = (reader: SubjectReader, decided: DecidedOutcomes) => boolean
