// Formats figures as a report shows them.

export function formatNumber(value: number): string {
  return value.toLocaleString('en')
}

/** Adds digits as needed, so that only 0 is shown as "0.0 %" and only 1 as "100 %". */
export function formatPercent(share: number): string {
  const formatRounded = (digits: number) => (share * 100).toFixed(digits)
  let digits = share < 0.1 ? 1 : 0
  while (share > 0 && share < 1 && [0, 100].includes(Number(formatRounded(digits)))) digits++
  return `${formatRounded(digits)} %`
}

export function formatDuration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`
  const minutes = Math.ceil(seconds / 60)
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
