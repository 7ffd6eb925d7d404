import type { ReactNode } from 'react'
import { Tabs as AriaTabs, Tab, TabList, TabPanel } from 'react-aria-components'
import css from './tabs.module.css'

export interface TabItem {
  readonly id: string
  readonly label: ReactNode
  readonly content: ReactNode
  readonly isDisabled?: boolean
}

export interface TabsProps {
  readonly label: string
  readonly tabs: readonly TabItem[]
  readonly value?: string
  readonly onChange?: (id: string) => void
}

export function Tabs({ label, tabs, value, onChange }: TabsProps) {
  return (
    <AriaTabs selectedKey={value} onSelectionChange={key => onChange?.(String(key))}>
      <TabList aria-label={label} className={css.list!}>
        {tabs.map(tab => (
          <Tab key={tab.id} id={tab.id} isDisabled={tab.isDisabled ?? false} className={css.tab!}>
            {tab.label}
          </Tab>
        ))}
      </TabList>
      {tabs.map(tab => (
        <TabPanel key={tab.id} id={tab.id} className={css.panel!}>
          {tab.content}
        </TabPanel>
      ))}
    </AriaTabs>
  )
}

/** Tabs that are addresses: links with the class `tabLinkClass`; the router marks the current one. */
export function TabLinks({ label, children }: { label: string; children: ReactNode }) {
  return (
    <nav aria-label={label} className={css.list}>
      {children}
    </nav>
  )
}

export const tabLinkClass = css.tab!
