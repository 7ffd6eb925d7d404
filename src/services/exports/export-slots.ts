// Bounds how many exports run at once. A slow reader holds its batch in memory for as long as it reads.

import { err, ok, type Result } from '#core/result.ts'
import { ExportStopped } from './run-export.ts'

export type ExportRefusal = 'full' | 'project_full'

export interface ExportSlot {
  /** Aborted with an `ExportStopped` when another export needs a place and the reader of this export is slow. */
  readonly signal: AbortSignal
  /** Notes that the export waits for its reader, until the returned function is called. */
  waitForReader(): () => void
  leave(): void
}

export type ExportSlots = ReturnType<typeof createExportSlots>

export interface ExportSlotsOptions {
  /** ms of a clock that cannot be set. */
  readonly monotonicMs?: () => number
  readonly inAllMax?: number
  readonly perProjectMax?: number
}

/** Maximum numbers of exports in one process. */
export const exportSlotLimits = { inAllMax: 6, perProjectMax: 2 }
/**
 * In ms: a reader that takes nothing for this long loses its place to another export. Readers receive a few 100 KB at a
 * time.
 */
const slowMs = 10_000

interface Place extends ExportSlot {
  readonly projectId: number
  readonly stop: AbortController
  waitingSinceMs: number | null
}

export function createExportSlots(options: ExportSlotsOptions = {}) {
  const { inAllMax, perProjectMax } = { ...exportSlotLimits, ...options }
  const monotonicMs = options.monotonicMs ?? (() => performance.now())
  const taken = new Set<Place>()

  function findSlowest(): Place | undefined {
    const latestMs = monotonicMs() - slowMs
    const slow = [...taken].filter(({ waitingSinceMs }) => waitingSinceMs !== null && waitingSinceMs <= latestMs)
    return slow.sort((a, b) => a.waitingSinceMs! - b.waitingSinceMs!)[0]
  }

  return {
    /**
     * Takes a place, which must be left again. When all are taken, the export that waits longest for its reader is
     * ended.
     */
    enter(projectId: number): Result<ExportSlot, ExportRefusal> {
      if ([...taken].filter(place => place.projectId === projectId).length >= perProjectMax) return err('project_full')
      if (taken.size >= inAllMax) {
        const other = findSlowest()
        if (other === undefined) return err('full')
        other.leave()
        other.stop.abort(new ExportStopped('too_slow'))
      }
      const stop = new AbortController()
      const place: Place = {
        projectId,
        stop,
        signal: stop.signal,
        waitingSinceMs: null,
        waitForReader: () => {
          place.waitingSinceMs = monotonicMs()
          return () => {
            place.waitingSinceMs = null
          }
        },
        leave: () => void taken.delete(place),
      }
      taken.add(place)
      return ok(place)
    },
  }
}
