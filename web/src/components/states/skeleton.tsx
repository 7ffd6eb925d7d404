import css from './states.module.css'

export interface SkeletonProps {
  /** What is loading: "flags". */
  readonly what: string
  readonly rowCount?: number
}

/** Rows of the height that the real ones will have. Nothing is seen for the first 150 ms. */
export function Skeleton({ what, rowCount = 8 }: SkeletonProps) {
  return (
    <div role="status" className={css.skeleton}>
      <span className="visually-hidden">Loading {what}</span>
      {Array.from({ length: rowCount }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows are all alike
        <div key={row} className={css.skeletonRow} />
      ))}
    </div>
  )
}
