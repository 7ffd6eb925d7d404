// The outcomes of a capture request.

import type { EventRefusal } from '#core/capture/normalize-event.ts'
import type { OutcomeTable } from '#core/capture/outcome-table.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'

/**
 * Reads an answer off the final table of a request: after the last change to its rows, and before its records go to the
 * log, which takes over their bytes.
 */
export type AnswerReading<Answer> = (table: OutcomeTable) => MaybePromise<Answer>

/**
 * Adds to an answer what is too expensive to compute for a request that is refused: called when only the log can still
 * refuse it, and before its records go there.
 */
export type AnswerCompletion<Answer> = (answer: Answer) => Promise<Answer>

export type CaptureOutcome<Answer> =
  /** Every item that the table marks as stored is durable; there may be none. */
  | { readonly kind: 'stored'; readonly answer: Answer }
  /** Nothing is stored, because one item is bad. `field` names the field at fault, such as `batch.3.distinct_id`. */
  | { readonly kind: 'refused'; readonly refusal: EventRefusal; readonly index: number; readonly field: string }
  | { readonly kind: 'unknown_project' }
  /**
   * Nothing is stored, or after a timeout perhaps everything; the same request may be sent again. `reason` names the limit
   * that was reached, if one was.
   */
  | { readonly kind: 'unavailable'; readonly answer: Answer; readonly reason?: string }
