import com.clickhouse.client.api.Client;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;

/** What Metabase, DBeaver and DataGrip ask through ClickHouse's driver, and a program through its Java client. */
public class ReadThePort {
  public static void main(String[] args) throws Exception {
    Properties login = new Properties();
    login.put("user", "project_1");
    login.put("password", args[1]);
    try (Connection connection = DriverManager.getConnection("jdbc:ch://127.0.0.1:" + args[0] + "/", login)) {
      System.out.println("valid " + connection.isValid(5));
      DatabaseMetaData meta = connection.getMetaData();
      System.out.println("product " + meta.getDatabaseProductName());
      System.out.println("tables " + names(meta.getTables(null, "pennon_sql", "%", null), "TABLE_NAME"));
      System.out.println("columns " + names(meta.getColumns(null, "pennon_sql", "persons", "%"), "COLUMN_NAME"));
      System.out.println("types " + (names(meta.getTypeInfo(), "TYPE_NAME").size() > 10));
      System.out.println("keys " + names(meta.getPrimaryKeys(null, "pennon_sql", "events"), "COLUMN_NAME"));
      Statement statement = connection.createStatement();
      statement.setMaxRows(2);
      String quoted = "-- Metabase:: userID: 1\nSELECT `pennon`.`events`.`event` AS `event`, COUNT(*) AS `count` "
        + "FROM `pennon`.`events` GROUP BY `pennon`.`events`.`event` ORDER BY `count` DESC";
      System.out.println("counted " + rows(statement.executeQuery(quoted)));
      System.out.println("settings " + rows(statement.executeQuery("SELECT count() FROM default.events SETTINGS max_threads = 1")));
      System.out.println("plan " + rows(statement.executeQuery("EXPLAIN SELECT count() FROM events")).size());
      PreparedStatement prepared =
        connection.prepareStatement("SELECT distinct_id FROM events WHERE event = ? AND timestamp > ? ORDER BY distinct_id");
      prepared.setString(1, "of-1");
      prepared.setTimestamp(2, new Timestamp(0));
      System.out.println("prepared " + rows(prepared.executeQuery()));
      String schema = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'pennon_sql' ORDER BY table_name";
      System.out.println("information_schema " + rows(statement.executeQuery(schema)));
    }
    Client.Builder builder = new Client.Builder().addEndpoint("http://127.0.0.1:" + args[0] + "/");
    try (Client client = builder.setUsername("project_1").setPassword(args[1]).build()) {
      System.out.println("client " + client.queryAll("SELECT event FROM events").size());
      System.out.println("many " + client.queryAll("SELECT number FROM numbers(200000)").size());
    }
  }

  private static List<String> names(ResultSet set, String column) throws Exception {
    TreeSet<String> found = new TreeSet<>();
    while (set.next()) found.add(set.getString(column));
    return new ArrayList<>(found);
  }

  private static List<String> rows(ResultSet set) throws Exception {
    List<String> found = new ArrayList<>();
    while (set.next()) found.add(set.getString(1));
    return found;
  }
}
