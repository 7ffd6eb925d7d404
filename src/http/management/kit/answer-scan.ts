// Answers with an error when too many searches through the persons or groups of a project are already queued.

import { TooManyScansError } from '#services/scans/subject-scans.ts'
import { wireError } from '#wire/wire-error.ts'
import { type Answer, refusal } from './answers.ts'

export async function answerFromScan<A>(scan: () => Promise<A>): Promise<A | Answer> {
  try {
    return await scan()
  } catch (error) {
    if (!(error instanceof TooManyScansError)) throw error
    return { ...refusal(tooManyScans), retryAfterSeconds: 5 }
  }
}

const tooManyScans = wireError(
  429,
  'too_many_scans',
  'Too many searches through the persons or groups of this project are running. Try again when one of them has ended.',
)
