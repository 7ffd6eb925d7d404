const widthMax = 24
/** The bar's share of the line. Most of the line is for the text, which says more than the bar. */
const shareOfLine = 0.2

/**
 * A bar and its percentage: `██████░░░░░░░░░░░░░░░░░░ 25 %`.
 * @param share 0 to 1; more counts as 1. @param columns the width of the line that contains the bar.
 */
export function formatProgressBar(share: number, columns = Number.POSITIVE_INFINITY): string {
  const width = Math.min(widthMax, Math.floor(columns * shareOfLine))
  const part = Math.min(1, Math.max(0, share))
  return `${'█'.repeat(Math.round(part * width)).padEnd(width, '░')} ${Math.floor(part * 100)} %`
}
