const widthMax = 24
/** The words beside the bar say more than it does. */
const shareOfLine = 0.2

/**
 * How far something is, as a picture and in per cent: `██████░░░░░░░░░░░░░░░░░░ 25 %`.
 * @param share 0 to 1; more counts as 1. @param columns of the line that it is a part of.
 */
export function progressBar(share: number, columns = Number.POSITIVE_INFINITY): string {
  const width = Math.min(widthMax, Math.floor(columns * shareOfLine))
  const part = Math.min(1, Math.max(0, share))
  return `${'█'.repeat(Math.round(part * width)).padEnd(width, '░')} ${Math.floor(part * 100)} %`
}
