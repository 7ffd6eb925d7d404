// Divides the time of an export into slices that are read with one query each. The rows of a day are stored in the order of
// the sort key, not of time, so every slice reads through its whole day. A slice is therefore as large as memory allows.

/** A run of days whose rows are divided into slices together, or one day that is too busy for that. */
export interface ExportWindow {
  /** Days such as `2026-01-31`, in the order of the export; at least one. */
  readonly days: readonly string[]
  /** The number of rows of these days in the store, copies included. */
  readonly rowCount: number
  readonly isBusy: boolean
}

export interface Bucket {
  /** Epoch ms; the end is exclusive. */
  readonly fromMs: number
  readonly toMs: number
  readonly rowCount: number
  readonly bytes: number
}

export interface SliceLimits {
  /** The window ends with the day that reaches this many rows; a day is never divided. */
  readonly windowRowsMin: number
  /** The most rows of a day that does not count as busy. */
  readonly dayRowsMax: number
  /** The most rows and bytes of one slice, unless a single bucket has more. */
  readonly sliceRowsMax: number
  readonly sliceBytesMax: number
}

/**
 * @param days in the order of the export.
 * @param busyDay a day that counts as busy, however few rows it has, because the export began to read it in the order of
 * its key.
 */
export function groupDaysIntoWindows(
  days: Iterable<readonly [day: string, rowCount: number]>,
  { windowRowsMin, dayRowsMax }: Pick<SliceLimits, 'windowRowsMin' | 'dayRowsMax'>,
  busyDay: string | null = null,
): ExportWindow[] {
  const windows: ExportWindow[] = []
  let gathered: string[] = []
  let rowCount = 0
  const close = () => {
    if (gathered.length > 0) windows.push({ days: gathered, rowCount, isBusy: false })
    gathered = []
    rowCount = 0
  }
  for (const [day, dayRowCount] of days) {
    if (dayRowCount > dayRowsMax || day === busyDay) {
      close()
      windows.push({ days: [day], rowCount: dayRowCount, isBusy: true })
      continue
    }
    gathered.push(day)
    rowCount += dayRowCount
    if (rowCount >= windowRowsMin) close()
  }
  close()
  return windows
}

/** The width of a window's buckets in ms: narrow enough that a slice consists of several buckets. */
export function computeBucketWidthMs(spanMs: number, rowCount: number, { sliceRowsMax }: SliceLimits): number {
  const bucketCount = Math.min(20_000, 64 + Math.ceil((rowCount / sliceRowsMax) * 32))
  return Math.max(1, Math.floor(spanMs / bucketCount))
}

/**
 * Groups buckets into slices, in the order of the buckets. Together, the slices cover the whole span, so that events that
 * arrive later between two buckets are also read. A slice of one bucket may exceed the limits.
 * @param buckets the buckets with rows, ascending or descending.
 * @param span epoch ms; its end is exclusive.
 */
export function groupIntoSlices(
  buckets: readonly Bucket[],
  span: { readonly fromMs: number; readonly toMs: number },
  descending: boolean,
  { sliceRowsMax, sliceBytesMax }: SliceLimits,
): Bucket[] {
  const slices: Bucket[] = []
  let open: Bucket | null = null
  for (const bucket of buckets) {
    const isFull: boolean =
      open !== null && (open.bytes + bucket.bytes > sliceBytesMax || open.rowCount + bucket.rowCount > sliceRowsMax)
    if (open !== null && isFull) slices.push(open)
    open =
      open === null || isFull
        ? bucket
        : {
            fromMs: Math.min(open.fromMs, bucket.fromMs),
            toMs: Math.max(open.toMs, bucket.toMs),
            rowCount: open.rowCount + bucket.rowCount,
            bytes: open.bytes + bucket.bytes,
          }
  }
  if (open !== null) slices.push(open)
  return slices.map((slice, index) =>
    descending
      ? {
          ...slice,
          fromMs: slices[index + 1]?.toMs ?? span.fromMs,
          toMs: index === 0 ? span.toMs : slice.toMs,
        }
      : {
          ...slice,
          fromMs: index === 0 ? span.fromMs : slice.fromMs,
          toMs: slices[index + 1]?.fromMs ?? span.toMs,
        },
  )
}
