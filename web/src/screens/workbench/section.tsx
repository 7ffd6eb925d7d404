import { type ReactNode, useId } from 'react'
import css from './workbench.module.css'

export function Section({ title, children }: { title: string; children: ReactNode }) {
  const id = useId()
  return (
    <section aria-labelledby={id} className={css.section}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  )
}

/** A row of states of one component. */
export function Row({ children }: { children: ReactNode }) {
  return <div className={css.row}>{children}</div>
}

/** Components that fill their column. */
export function Columns({ children }: { children: ReactNode }) {
  return <div className={css.columns}>{children}</div>
}
